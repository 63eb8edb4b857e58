"""How fast a row is: its notebook's code as a plain script, against other ways to write it, and step by step.

scripts makes a script of a notebook's cells, some of them replaced; inside is what runs in the framework's own process; pairs lets
two scripts train by turns, sweep times the phases of a step for threads and batch sizes, page writes the tables down.
"""
