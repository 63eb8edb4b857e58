"""``run_all.py measure``: how fast rows and this machine are.

rows chooses what to measure, keeps it, and runs scripts, in which inside works. commands measures loops, phases and this
machine, protocols the points of published benchmarks. tables and pictures show them.
"""
