"""``run_all.py measure`` and ``sweep``: how fast rows and this machine are.

rows chooses what to measure and keeps it; scripts makes a script of a notebook's cells and runs it, and inside is what runs there.
commands measures loops, phases and this machine, protocols the points of published benchmarks. tables and pictures show them.
"""
