"""Errors between the store and its database, independent of the kind of database.

Driver errors are translated once, where they are raised (`hms_cache.store.engine.dialects.classify`). Constraint
violations stay SQLAlchemy's `IntegrityError`: only the caller of the statement knows what they mean.
"""

from __future__ import annotations

from hms_cache.errors import DatabaseUnavailableError, HmsCacheError


class DatabaseUnavailable(DatabaseUnavailableError):
    """The database refused the connection, dropped it or was too slow, or no connection of the pool came free.

    ``connection_lost`` is true if an open connection broke: the database has rolled back its transaction, unless COMMIT
    was under way, and the transaction may run again on a new connection. It is false if this server itself closed the
    connection because the call was given up (`ThreadConnections.interrupt`).
    """

    def __init__(self, message: str, *, connection_lost: bool = False) -> None:
        super().__init__(message)
        self.connection_lost = connection_lost


class RetryableConflict(HmsCacheError):
    """The transaction failed because of another one (deadlock, serialization failure, lock wait) and was rolled back or
    has to be."""

    retriable = True


class CommitOutcomeUnknown(DatabaseUnavailable):
    """The connection broke while COMMIT was under way: it is unknown whether the write was committed.

    Never retried here. No action for a commit or a rollback has run (created directories stay, and so do directories
    that were to be deleted).
    """
