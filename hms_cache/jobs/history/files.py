"""Files of a history, accessed by Hadoop's file systems: wherever Spark can write, with Spark's own credentials."""

from __future__ import annotations

from typing import Any, NamedTuple

from pyspark.sql import SparkSession


class StoredFile(NamedTuple):
    """A file below a directory, with its path relative to it."""

    path: str
    size_bytes: int


class Files:
    """Operations below one directory. Paths are relative to it; failures raise Py4JJavaError."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        jvm: Any = spark._jvm
        self.root = root.rstrip("/")
        self._path = jvm.org.apache.hadoop.fs.Path
        self._system: Any = self._path(self.root).getFileSystem(spark._jsc.hadoopConfiguration())

    def _at(self, path: str) -> Any:
        return self._path(f"{self.root}/{path}" if path else self.root)

    def exists(self, path: str = "") -> bool:
        """Whether the file or directory exists."""
        return bool(self._system.exists(self._at(path)))

    def directories(self, path: str = "") -> list[str]:
        """Names of the subdirectories, sorted; none if the directory does not exist."""
        if not self.exists(path):
            return []
        return sorted(one.getPath().getName() for one in self._system.listStatus(self._at(path)) if one.isDirectory())

    def files(self, path: str) -> list[StoredFile]:
        """The data files in and below a directory, by path; none if the directory does not exist."""
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
        """Deletes a file, or a directory with its content; does nothing if it does not exist."""
        self._system.delete(self._at(path), True)

    def move(self, path: str, to: str) -> None:
        """Moves a file to a path that does not exist. Raises OSError if it fails."""
        self._system.mkdirs(self._at(to.rpartition("/")[0]))
        if not self._system.rename(self._at(path), self._at(to)):
            raise OSError(f"{self.root}/{path} could not be moved to {to}")

    def write(self, path: str, text: str) -> None:
        """Writes a file atomically: by the close in object stores, otherwise by a rename."""
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
