"""What can go wrong between the store and its database, whichever database it is.

Driver errors are translated once, where they are raised (`hms_cache.store.engine.dialects.classify`). Integrity
violations stay `IntegrityError` of SQLAlchemy: only the author of the statement knows what they mean.
"""

from __future__ import annotations

from hms_cache.errors import DatabaseUnavailableError, HmsCacheError


class DatabaseUnavailable(DatabaseUnavailableError):
    """The database refused the connection, dropped it, was too slow, or no connection of the pool came free.

    ``connection_lost`` is true when a connection that had been open broke: a transaction on it has been rolled back by
    the database unless its COMMIT was under way, and it may be run again on a new connection. It is false where this
    server closed it itself, because the call was given up (`HeldConnections.cut_off`).
    """

    def __init__(self, message: str, *, connection_lost: bool = False) -> None:
        super().__init__(message)
        self.connection_lost = connection_lost


class RetryableConflict(HmsCacheError):
    """The transaction lost to another one (deadlock, serialization, lock wait) and was or has to be rolled back."""

    retriable = True


class CommitOutcomeUnknown(DatabaseUnavailable):
    """The connection broke while COMMIT was under way: the write is whole in the database or not at all, nobody knows.

    Never retried here. Nothing that belongs to a commit or to a rollback has been done for it (directories made stay,
    directories to be deleted stay).
    """
