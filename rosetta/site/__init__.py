"""``run_all.py site``: a static site from notebooks, catalog and records, to read frameworks side by side.

content and programs read what is shown, highlight, prose and executed make HTML of it; task_pages, frameworks and results
write their pages, build all of them. Needs the optional extra ``site``.
"""
