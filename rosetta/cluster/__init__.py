"""A batch on the workers of a Dask cluster: ``run_all.py run --cluster``. Needs the optional extra ``cluster``.

Dask carries runs and answers, notices lost workers, and keeps a worker at one run at a time by a resource.
docs/cluster.md says what is left to it, and why the rest is here:

executor    which run goes to which worker; a run whose worker is lost goes elsewhere once
members     which workers may be used
connection  what can be wrong with the scheduler, in one line
checkout    whether two checkouts run the same thing
worker      the part that runs there, in a checkout like this one; it kills a run that nobody waits for
"""
