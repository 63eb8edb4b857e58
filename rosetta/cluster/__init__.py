"""A batch on the workers of a Dask cluster: ``run_all.py run --cluster``. Needs the optional extra ``cluster``.

executor gives runs to members, which scheduler reaches; worker is the part that runs there, in a checkout like this one.
"""
