"""``hms-cache shadow``: the same reads asked of two metastores, and every difference between their answers.

The reads come from clients (`proxy`), from a file that an earlier run recorded (`recording`), or from a walk over the
whole catalog (`walk`). One metastore is the *primary*: clients get its answers. The *other* is only read from.
Nothing is ever written to either by the shadow itself; clients' writes reach the primary alone.
"""
