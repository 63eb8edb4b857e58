"""``run_all.py compare`` and the end of a batch: what has changed between two sets of records, beyond noise."""
