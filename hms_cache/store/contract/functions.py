"""Contract: permanent functions."""

from __future__ import annotations

from abc import ABC, abstractmethod

from hms_cache.metadata.object_names import DatabaseName, FunctionName
from hms_cache.thrift_gen.hive_metastore.ttypes import Function


class FunctionReads(ABC):
    """Reads of functions."""

    @abstractmethod
    def get_function(self, function: FunctionName) -> Function:
        """The function. Raises NoSuchObjectException."""

    @abstractmethod
    def get_function_names(self, database: DatabaseName, pattern: str | None = None) -> list[str]:
        """Names, ascending; pattern as in `get_database_names`."""

    @abstractmethod
    def get_functions(self, catalog: str, database: str | None = None, pattern: str | None = None) -> list[Function]:
        """Functions of one database or of all, by (database, name)."""


class FunctionWrites(ABC):
    """Writes of functions."""

    @abstractmethod
    def create_function(self, function: Function) -> None:
        """Raises AlreadyExistsException, InvalidObjectException (name), NoSuchObjectException (database)."""

    @abstractmethod
    def alter_function(self, name: FunctionName, function: Function) -> None:
        """Raises MetaException (the function does not exist, or the new name is in use) and InvalidObjectException (its
        new database does not exist), as Hive does. Hive logs no event for it."""

    @abstractmethod
    def drop_function(self, name: FunctionName) -> None:
        """Raises NoSuchObjectException."""
