"""``run_all.py site``: a static site from notebooks, catalog and records, to read frameworks side by side.

html makes HTML of what authors wrote, addresses says where each page is, pages fills the templates, build writes all. Needs the
extra ``site``.
"""
