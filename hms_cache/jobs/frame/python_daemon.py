"""What Spark's Python workers on this machine are forked from: PySpark's own daemon, without PySpark's archives.

Spark puts ``pyspark.zip`` in front of the path of its workers, and before each task a worker reads the directory of
each archive on it again, which takes 40 ms.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder

MODULE = __name__ if __name__ != "__main__" else "hms_cache.jobs.frame.python_daemon"
"""For ``spark.python.daemon.module``."""


def leave_archives_out() -> None:
    """Takes archives from the path of this process if PySpark is found without them."""
    rest = [entry for entry in sys.path if not entry.endswith(".zip")]
    if PathFinder.find_spec("pyspark", rest) is None or PathFinder.find_spec("py4j", rest) is None:
        return
    for entry in list(sys.path_importer_cache):
        if ".zip" in entry:
            del sys.path_importer_cache[entry]
    sys.path[:] = rest


if __name__ == "__main__":
    leave_archives_out()
    from pyspark.daemon import manager

    manager()
