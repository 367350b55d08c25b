"""``hms-cache shadow``: sends the same reads to two metastores and reports every difference between their answers.

The reads come from clients (`proxy`), from a file recorded by an earlier run (`recording`), or from a walk over the
whole catalog (`walk`). Clients get the answers of one metastore, the *primary*. The *other* receives only reads. The
shadow itself writes to neither; clients' writes go to the primary alone.
"""
