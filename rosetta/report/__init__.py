"""The generated pages: functions of the catalog, the records on disk and the published figures.

results says which records belong together, tables makes each table once, for Markdown (pages) and the site; charts draws.
"""
