"""What every notebook imports: shared parameters, data loaders, the epoch log and the record.

Runs on Python 3.6 to 3.13 with NumPy and the standard library alone, because kernels from 2017 import it too.
"""
