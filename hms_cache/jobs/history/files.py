"""Files of a history through Hadoop's file systems: what Spark can write, this can, with Spark's own credentials."""

from __future__ import annotations

from typing import Any, NamedTuple

from pyspark.sql import SparkSession


class StoredFile(NamedTuple):
    """A file below a directory, by its path from there."""

    path: str
    size_bytes: int


class Files:
    """Operations below one directory. Paths are relative to it; what fails raises Py4JJavaError."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        jvm: Any = spark._jvm
        self.root = root.rstrip("/")
        self._path = jvm.org.apache.hadoop.fs.Path
        self._system: Any = self._path(self.root).getFileSystem(spark._jsc.hadoopConfiguration())

    def _at(self, path: str) -> Any:
        return self._path(f"{self.root}/{path}" if path else self.root)

    def exists(self, path: str = "") -> bool:
        """Whether there is a file or directory."""
        return bool(self._system.exists(self._at(path)))

    def directories(self, path: str = "") -> list[str]:
        """Names of the directories in a directory, sorted; none if it is not there."""
        if not self.exists(path):
            return []
        return sorted(one.getPath().getName() for one in self._system.listStatus(self._at(path)) if one.isDirectory())

    def files(self, path: str) -> list[StoredFile]:
        """The files with data in a directory, in any depth, by path; none if it is not there."""
        if not self.exists(path):
            return []
        base = self._system.makeQualified(self._at("")).toUri().getPath().rstrip("/") + "/"
        found = []
        listing = self._system.listFiles(self._at(path), True)
        while listing.hasNext():
            one = listing.next()
            if not one.getPath().getName().startswith(("_", ".")):
                found.append(StoredFile(one.getPath().toUri().getPath().removeprefix(base), one.getLen()))
        return sorted(found)

    def delete(self, path: str) -> None:
        """A file, or a directory with all that is in it; nothing if it is not there."""
        self._system.delete(self._at(path), True)

    def move(self, path: str, to: str) -> None:
        """A file to a place where none is. Raises OSError if it was not done."""
        self._system.mkdirs(self._at(to.rpartition("/")[0]))
        if not self._system.rename(self._at(path), self._at(to)):
            raise OSError(f"{self.root}/{path} could not be moved to {to}")

    def write(self, path: str, text: str) -> None:
        """The file appears whole where a close makes it appear (object stores), else by a rename."""
        beside = f"{path}.writing"
        stream = self._system.create(self._at(beside), True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        self.move(beside, path)

    def read(self, path: str) -> str:
        """The text of a file."""
        stream = self._system.open(self._at(path))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()
