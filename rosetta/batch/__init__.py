"""Many runs on this machine, or for a cluster to execute: one after another on each device, whatever happens to one of them.

journal keeps on disk what was ordered and what is done, for ``resume`` and ``watch``; screen draws it.
"""
