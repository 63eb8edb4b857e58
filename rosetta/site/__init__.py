"""``run_all.py site``: a static site from notebooks, catalog and records, to read frameworks side by side.

programs reads what is set side by side, html makes HTML of it, pages fills the templates, build writes all. Needs the extra
``site``.
"""
