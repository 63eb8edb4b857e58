"""Adding a framework: ``run_all.py new`` writes what it needs, ``env --lock`` makes its environment, ``check`` says what is wrong.

scaffold writes notebook, environment and catalog entry; locking resolves an environment's packages; check takes a row through
everything that is asked of it, of which figures judges what a run reports and costs writes down what it took.
"""
