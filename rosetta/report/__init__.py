"""``results.md`` and the pages below ``results/``: functions of the catalog, the records on disk and the published figures.

experiments and columns say which records belong together, tables makes each table once, for Markdown (pages) and the site.
"""
