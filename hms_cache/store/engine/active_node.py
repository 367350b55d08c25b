"""The node of a Galera cluster through which a set of servers writes: one at a time.

On Galera, each node has its own row locks. Between nodes, only a change of a row excludes another change of this row:
of two transactions that change it without having seen each other, the first to commit wins, and the other one is rolled
back (error 1213). What writers only read under a lock is not protected. So two transactions of Hive that update one
table could both commit, each through another node.

Therefore a row of METASTORE_DB_PROPERTIES contains the *active node* and the number of its *tenure*. Every write
changes the row as its last statement, on the condition that it still has the tenure that was current before the write
began, and that the session is on its node. A server on another node first takes the tenure over, in a transaction of
its own. Only what writes rows regardless of any others (heartbeats, the release of locks, blocks of ids) does without.
So all writes of a tenure are made on one node, where row locks are valid, and a write that began before the tenure
ended does not commit after it: either it finds another number, or both have changed the same row.

A server that takes over has all earlier commits: a node commits in the order of the cluster.
"""

from __future__ import annotations

import logging
import time
from typing import Any, Final

from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from hms_cache.computing import scheduler
from hms_cache.limited_log import LimitedLog
from hms_cache.store.engine.direct_statements import Direct, Statement
from hms_cache.store.engine.drivers.mysql_driver import MySqlConnection
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.schema import METASTORE_DB_PROPERTIES

_LOGGER = LimitedLog(logging.getLogger(__name__))

KEY: Final = "galera.active_node"
"""Of the row. Keys that begin with "hms" belong to Hive's properties."""

TENURE_S: Final = 0.1
"""How long a server that wants to write through another node leaves the tenure to those who have it. Without this,
servers on two nodes would interrupt each other before any write is finished."""

_NODE: Final = "CONCAT_WS(':', @@hostname, @@port, @@wsrep_node_address, @@wsrep_node_name)"
"""The node that executes the statement: a proxy may lead two transactions of one session to different nodes."""

_TABLE: Final = METASTORE_DB_PROPERTIES.name
_READ: Final = text(f"SELECT PROPERTY_VALUE, {_NODE} FROM {_TABLE} WHERE PROPERTY_KEY = '{KEY}'")
_BEGIN: Final = text(
    f"INSERT INTO {_TABLE} (PROPERTY_KEY, PROPERTY_VALUE, DESCRIPTION) VALUES ('{KEY}', CONCAT('1 ', {_NODE}), UUID())"
)
_TAKE_OVER: Final = text(
    f"UPDATE {_TABLE} SET PROPERTY_VALUE = CONCAT(:next, ' ', {_NODE}), DESCRIPTION = UUID()"
    f" WHERE PROPERTY_KEY = '{KEY}' AND PROPERTY_VALUE = :seen"
)
# A new value each time: Galera does not replicate a change that changes nothing.
_CONFIRM: Final = text(
    f"UPDATE {_TABLE} SET DESCRIPTION = UUID()"
    f" WHERE PROPERTY_KEY = '{KEY}' AND PROPERTY_VALUE = CONCAT(:tenure, ' ', {_NODE})"
)
_BEGIN_NEXT: Final = Direct(
    text(
        f"INSERT INTO {_TABLE} (PROPERTY_KEY, PROPERTY_VALUE, DESCRIPTION) VALUES ('{KEY}', '0 none', UUID())"
        " ON DUPLICATE KEY UPDATE DESCRIPTION = UUID(), PROPERTY_VALUE ="
        " CONCAT(CAST(SUBSTRING_INDEX(PROPERTY_VALUE, ' ', 1) AS SIGNED) + 1, SUBSTRING(PROPERTY_VALUE,"
        " LOCATE(' ', PROPERTY_VALUE)))"
    )
)


def is_node_of_cluster(connection: Connection) -> bool:
    """Whether the session is on a node of a Galera cluster. Found out when the connection was opened."""
    driver = connection.connection.dbapi_connection
    return isinstance(driver, MySqlConnection) and driver.is_node_of_cluster


def beginning_next_tenure(connection: Connection) -> list[Statement]:
    """The last statement of a transaction that has to exclude writes on all nodes: a write that has begun before it
    does not commit after it. Empty if there is no cluster: row locks do that."""
    return [(_BEGIN_NEXT, {})] if is_node_of_cluster(connection) else []


class ActiveNode:
    """This server's knowledge of the tenure. Thread-safe.

    Attributes are replaced as a whole. Threads that overwrite each other's knowledge only cause another attempt.
    """

    def __init__(self) -> None:
        self._tenure: int | None = None
        """The tenure on this server's node, as last read. None: to be read before the next write."""
        self._of_others: tuple[str, float] | None = None
        """The row as found with another node in it, and since when."""

    def wait(self) -> None:
        """Called before a write, without a connection: leaves others the time to finish their writes."""
        found = self._of_others
        if found is not None and (left_s := found[1] + TENURE_S - time.monotonic()) > 0:
            with scheduler.waiting():
                time.sleep(left_s)

    def tenure(self, connection: Connection) -> int | None:
        """The tenure in which the transaction that begins next on this connection may write. None if there is no
        cluster. Needs no statement if it is known.

        :raises RetryableConflict: another node is active; after `wait`, the next call takes over.
        """
        if not is_node_of_cluster(connection):
            return None
        known = self._tenure
        if known is None:
            known = self._tenure = self._read_or_take(connection)
            self._of_others = None
        return known

    def confirm(self, connection: Connection, tenure: int) -> None:
        """The last statement of a write.

        :raises RetryableConflict: the tenure has ended since the write began.
        """
        if connection.execute(_CONFIRM, {"tenure": tenure}).rowcount != 1:
            self._tenure = None
            raise RetryableConflict("another node of the Galera cluster has become the active one")

    def forget(self) -> None:
        """Another node may be behind the address."""
        self._tenure = None

    def _read_or_take(self, connection: Connection) -> int:
        try:
            return self._read_or_take_over(connection)
        finally:
            connection.rollback()

    def _read_or_take_over(self, connection: Connection) -> int:
        row: Any = connection.execute(_READ).first()
        if row is None:
            try:
                connection.execute(_BEGIN)
                connection.commit()
            except IntegrityError as error:
                raise RetryableConflict("another server began the first tenure at the same moment") from error
            return 1
        seen, own = row
        number, _, node = seen.partition(" ")
        if node == own:
            return int(number)
        found, now_s = self._of_others, time.monotonic()
        if found is None or found[0] != seen:
            self._of_others = seen, now_s
            raise RetryableConflict("another node of the Galera cluster is the active one")
        if now_s < found[1] + TENURE_S:
            raise RetryableConflict("another node of the Galera cluster is the active one")
        following = int(number) + 1
        if connection.execute(_TAKE_OVER, {"next": following, "seen": seen}).rowcount != 1:
            raise RetryableConflict("another server changed the active node at the same moment")
        connection.commit()
        _LOGGER.warning(
            "writes go through the Galera node %s now (before: %s). If this happens again and again, servers of this"
            " database use different nodes: let database.url lead all of them to the same one",
            own,
            node,
        )
        return following


def other_active_node(connection: Connection) -> str | None:
    """The active node, if it is another one than that of this session; else None."""
    if not is_node_of_cluster(connection):
        return None
    row: Any = connection.execute(_READ).first()
    if row is None:
        return None
    node: str = row[0].partition(" ")[2]
    return None if node == row[1] else node
