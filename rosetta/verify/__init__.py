"""``run_all.py verify``: does every notebook compute what the reference in NumPy does?

proof runs a row's notebook and has what the proofs of all kinds share; train, infer, speed and entries prove a kind each, name known
mistakes, and let rows exchange weights; conformance keeps what was found and writes the page; command is what the user calls.
"""
