"""One run: a plan goes into ``execute``, a record comes out.

kernels says which interpreter a row runs on, environments makes it where none was given; child is the process that runs the
notebook, executed reads what it left, telemetry what it cost; devices are the places where runs go, on a machine.
"""
