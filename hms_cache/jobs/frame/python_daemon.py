"""The process that forks Spark's Python workers on this machine: PySpark's own daemon, without Spark's archives.

Spark puts ``pyspark.zip`` and a jar first on the path of its workers. Before each task, a worker reads the directory of
each archive on its path again, which takes 40 ms or more.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from pathlib import Path
from zipfile import is_zipfile

MODULE = __name__ if __name__ != "__main__" else "hms_cache.jobs.frame.python_daemon"
"""Value for ``spark.python.daemon.module``."""


_OF_SPARK = ("pyspark", "py4j", "spark-core")


def exclude_archives() -> None:
    """Removes Spark's archives from the path of this process if PySpark can be imported without them."""
    archives = [entry for entry in sys.path if Path(entry).name.startswith(_OF_SPARK) and is_zipfile(entry)]
    rest = [entry for entry in sys.path if entry not in archives]
    if PathFinder.find_spec("pyspark", rest) is None or PathFinder.find_spec("py4j", rest) is None:
        return
    for name, module in list(sys.modules.items()):
        # A namespace package, such as `org` of a jar from which somebody tried to import, would find them again.
        if any(str(place).startswith(tuple(archives)) for place in getattr(module, "__path__", ())):
            del sys.modules[name]
    for entry in list(sys.path_importer_cache):
        if entry.startswith(tuple(archives)):
            del sys.path_importer_cache[entry]
    sys.path[:] = rest


if __name__ == "__main__":
    exclude_archives()
    from pyspark.daemon import manager

    manager()
