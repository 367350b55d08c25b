"""What another metastore says about itself, as far as those who share its database must know."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from hms_cache.authentication.servers import Address
from hms_cache.client import Authentication
from hms_cache.client.connection import Connection
from hms_cache.config.quantities import parse_duration_s
from hms_cache.thrift_gen.hive_metastore.ttypes import ConfigValSecurityException
from hms_cache.values import frozen

_TIMEOUT_S = 10.0

#: Part of the name of every class that writes the notification log: Hive's DbNotificationListener and those around it.
_LISTENER = "NotificationListener"
_TRANSFORMER = "MetastoreDefaultTransformer"


@frozen
class PeerSettings:
    """Settings of a peer that we must know; times are None where it does not tell."""

    logs_in_transaction: bool
    """Its events are written in the transaction of the change."""

    logs_after_commit: bool
    """Its events are written later: a crash in between loses one."""

    txn_timeout_s: float | None
    open_txn_timeout_s: float | None
    retention_s: float | None
    """How long it keeps events."""

    translates: bool
    """Managed tables that are not transactional become external ones, which is Hive 4's default."""


def read_peer_settings(address: str, authentication: Authentication) -> PeerSettings:
    """Reads the settings of a metastore at ``thrift://host:port`` (or ``host:port``, ``thrift+tls://host:port``,
    ``https://…``).

    Raises ``TException``, ``OSError`` or ``EOFError`` if it does not answer, and ``HmsCacheError`` if the address is
    invalid or it refuses the credentials.
    """
    where = Address.parse(address if "://" in address else f"thrift://{address}")
    with closing(
        Connection(where, authentication, connect_timeout_s=_TIMEOUT_S, call_timeout_s=_TIMEOUT_S)
    ) as connection:

        def setting(name: str) -> str:
            """Returns a setting. Takes its older name: metastores before 4.0 refuse names that begin with
            `metastore.`."""
            value: str = connection.call("get_config_value", (name, ""))
            return value

        return PeerSettings(
            logs_in_transaction=_LISTENER in setting("hive.metastore.transactional.event.listeners"),
            logs_after_commit=_LISTENER in setting("hive.metastore.event.listeners"),
            txn_timeout_s=_duration_s(setting("hive.txn.timeout")),
            open_txn_timeout_s=_duration_s(setting("hive.txn.opentxn.timeout")),
            retention_s=_retention_s(setting),
            translates=_translates(setting),
        )


def _retention_s(setting: Callable[[str], str]) -> float | None:
    """Returns the retention of events. Hive 4 has a separate setting for sources of replication, which Hive 3.1
    lacks."""
    usual = _duration_s(setting("hive.metastore.event.db.listener.timetolive"))
    if setting("hive.repl.cm.enabled").strip().lower() != "true":
        return usual
    of_source = _duration_s(setting("hive.repl.event.db.listener.timetolive"))
    return usual if of_source is None else of_source


def _translates(setting: Callable[[str], str]) -> bool:
    try:
        return setting("metastore.metadata.transformer.class").strip().endswith(_TRANSFORMER)
    except ConfigValSecurityException:
        return False  # Hive 3.1 knows no such setting


def _duration_s(text: str) -> float | None:
    try:
        return parse_duration_s(text, "s")
    except ValueError:
        return None
