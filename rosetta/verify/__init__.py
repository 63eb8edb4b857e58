"""``run_all.py verify``: is every notebook the same network as the reference in NumPy?

probes runs a row's notebook a few steps, levels judges what came out, conformance does so for many rows, page writes it down;
cross gives one framework's trained weights to the others.
"""
