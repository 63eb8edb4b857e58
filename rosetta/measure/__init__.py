"""``run_all.py measure`` and ``sweep``: how fast rows and this machine are.

scripts makes a script of a notebook's cells, some of them replaced; inside is what runs in the framework's own process; rows
measures row after row and keeps the points as records; keep holds what belongs to a machine and no row; tables shows both.
"""
