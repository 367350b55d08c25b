"""Delegation tokens and the keys that sign them. Facts: `ObjectStore` (3.1, 4.0.1).

The stored texts are created by `authentication/delegation` or another server; they are not interpreted here.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from hms_cache.batches import batches
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.listing import limited, listed
from hms_cache.store.engine.text_conditions import one_of_texts, same_text
from hms_cache.store.engine.work_units import WriteTransaction, run_read, run_write
from hms_cache.store.schema import DELEGATION_TOKENS, MASTER_KEYS
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchObjectException

TOKENS_IN_A_STATEMENT = 500
"""Tokens deleted in one transaction, during which servers can neither issue nor look up these tokens."""


class Tokens:
    """Reads and writes of tokens and master keys. Thread-safe; each method is one transaction unless stated
    otherwise."""

    def __init__(self, context: StoreContext) -> None:
        self._database = context.database
        self.enabled = context.settings.security.delegation_tokens
        """Whether clients may use them; checked by the callers that answer clients."""

    def add_token(self, identifier: str, token: str) -> bool:
        """Stores a token. False, without a change, if one with this identifier exists."""

        def add(transaction: WriteTransaction) -> None:
            transaction.connection.execute(insert(DELEGATION_TOKENS).values(TOKEN_IDENT=identifier, TOKEN=token))

        try:
            run_write(self._database, add)
        except IntegrityError:
            return False
        return True

    def remove_token(self, identifier: str) -> bool:
        """Deletes a token; returns whether it existed."""
        statement = delete(DELEGATION_TOKENS).where(same_text(DELEGATION_TOKENS.c.TOKEN_IDENT, identifier))
        return run_write(self._database, lambda transaction: bool(transaction.connection.execute(statement).rowcount))

    def remove_tokens(self, identifiers: Sequence[str]) -> int:
        """Deletes tokens and returns their number. One transaction per `TOKENS_IN_A_STATEMENT`."""
        column = DELEGATION_TOKENS.c.TOKEN_IDENT

        def remove(batch: Sequence[str]) -> int:
            # The first condition uses the index; the second excludes texts that the database merely considers equal.
            statement = delete(DELEGATION_TOKENS).where(column.in_(batch), one_of_texts(column, batch))
            return run_write(self._database, lambda transaction: transaction.connection.execute(statement).rowcount)

        return sum(map(remove, batches(identifiers, TOKENS_IN_A_STATEMENT)))

    def get_token(self, identifier: str) -> str:
        """The token; empty if it does not exist."""
        statement = select(DELEGATION_TOKENS.c.TOKEN).where(same_text(DELEGATION_TOKENS.c.TOKEN_IDENT, identifier))
        return run_read(self._database, lambda connection: connection.execute(statement).scalar()) or ""

    def find_token(self, identifiers: Sequence[str]) -> tuple[str, str] | None:
        """Identifier and token of the one that exists."""
        table = DELEGATION_TOKENS.c
        statement = select(table.TOKEN_IDENT, table.TOKEN).where(table.TOKEN_IDENT.in_(identifiers))

        def read(connection: Connection) -> tuple[str, str] | None:
            rows = connection.execute(statement).all()
            return next(((row[0], row[1]) for row in rows if row[0] in identifiers), None)

        return run_read(self._database, read)

    def update_token(self, identifier: str, token: str) -> bool:
        """Replaces a token; returns whether it existed."""

        def change(transaction: WriteTransaction) -> bool:
            connection, is_it = transaction.connection, same_text(DELEGATION_TOKENS.c.TOKEN_IDENT, identifier)
            # MySQL counts only rows whose values change.
            if connection.execute(select(DELEGATION_TOKENS.c.TOKEN).where(is_it).with_for_update()).first() is None:
                return False
            connection.execute(update(DELEGATION_TOKENS).where(is_it).values(TOKEN=token))
            return True

        return run_write(self._database, change)

    def get_all_token_identifiers(self) -> list[str]:
        """All identifiers, ascending."""
        statement = limited(select(DELEGATION_TOKENS.c.TOKEN_IDENT))
        found = run_read(self._database, lambda connection: connection.execute(statement).scalars().all())
        return sorted(listed(found, "delegation tokens"))

    def add_master_key(self, key: str) -> int:
        """Stores a key and returns its number.

        The number comes from Hive's sequence although the column is auto-numbered, as in Java servers: if both were
        used, numbers could collide.
        """

        def add(transaction: WriteTransaction) -> int:
            number = transaction.id("MMasterKey")
            transaction.connection.execute(insert(MASTER_KEYS).values(KEY_ID=number, MASTER_KEY=key))
            return number

        return run_write(self._database, add, ids={"MMasterKey": 1})

    def update_master_key(self, number: int, key: str) -> None:
        """Replaces a key. :raises NoSuchObjectException: there is no key with this number."""

        def change(transaction: WriteTransaction) -> None:
            connection, is_it = transaction.connection, MASTER_KEYS.c.KEY_ID == number
            # MySQL counts only rows whose values change.
            if connection.execute(select(MASTER_KEYS.c.KEY_ID).where(is_it).with_for_update()).first() is None:
                raise NoSuchObjectException(f"No key found with keyId: {number}")
            connection.execute(update(MASTER_KEYS).where(is_it).values(MASTER_KEY=key))

        run_write(self._database, change)

    def remove_master_key(self, number: int) -> bool:
        """Whether there was such a key."""
        statement = delete(MASTER_KEYS).where(MASTER_KEYS.c.KEY_ID == number)
        return run_write(self._database, lambda transaction: bool(transaction.connection.execute(statement).rowcount))

    def get_master_keys(self) -> list[str]:
        """The keys by their numbers."""
        return [key for _, key in self.master_keys()]

    def master_keys(self) -> list[tuple[int, str]]:
        """(number, key), ascending."""
        statement = select(MASTER_KEYS.c.KEY_ID, MASTER_KEYS.c.MASTER_KEY).order_by(MASTER_KEYS.c.KEY_ID)

        def read(connection: Connection) -> list[tuple[int, str]]:
            return [(number, key) for number, key in connection.execute(statement)]

        return run_read(self._database, read)
