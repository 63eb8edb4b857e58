"""One run: a plan goes into ``execute``, a record comes out.

kernels says which interpreter a row runs on, environments makes it where none was given; processes starts child, which runs the
notebook, and telemetry measures what it costs; devices are the places where runs go, on a machine.
"""
