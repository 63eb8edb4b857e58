"""``run_all.py measure`` and ``sweep``: how fast rows and this machine are.

scripts makes a script of a notebook's cells, some of them replaced; process runs one, and inside is what runs in it. turns lets
calls take turns. rows measures row after row; keep writes points, of rows as of a machine. cells, tables
and sweep_tables show them.
"""
