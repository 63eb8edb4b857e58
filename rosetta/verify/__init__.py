"""``run_all.py verify``: does every notebook compute what the reference in NumPy does?

kinds names the module that proves a kind of task (train, infer, speed, entries); probes runs a row's notebook for them, levels
judges what it saved, conformance keeps what was found, page writes it down; cross gives one
framework's trained weights to the others.
"""
