"""``results.md``: a function of the records on disk and nothing else."""
