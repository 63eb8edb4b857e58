"""The runner: plans runs of the notebooks, executes each in a process of its own, keeps records, writes the table.

Imports no deep-learning framework, ever: those live in the environments that the kernels run in.
"""
