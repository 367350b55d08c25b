"""What a handler is, and what it is given."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from hms_cache.call_context import call_context, for_write
from hms_cache.errors import DatabaseUnavailableError
from hms_cache.metadata.object_names import DatabaseName
from hms_cache.server.audit import struct_text
from hms_cache.server.session import Session
from hms_cache.server.stores import Stores
from hms_cache.store.contract.metadata import MetadataReads
from hms_cache.thrift_gen.hive_metastore.ttypes import Table
from hms_cache.values import frozen


class Kind(enum.Enum):
    """Where a call runs, and whether the audit log counts it as a write."""

    LOCAL = "local"
    """Answered on the event loop: uses memory only and never waits."""
    READ = "read"
    WRITE = "write"


def _nothing_to_do() -> None:
    """Where answers are not kept anyway."""


def _every_table(tables: list[Table]) -> list[Table]:
    """Where nothing is authorized."""
    return tables


@frozen
class Call:
    """One call on its way through a handler."""

    method: str
    session: Session
    stores: Stores
    keep_no_answer: Callable[[], None] = _nothing_to_do
    """Called if the answer depends on something that no event reports, such as a file: it must not be kept."""
    only_readable: Callable[[list[Table]], list[Table]] = _every_table
    """For tables found by a pattern: leaves those that the client may know of."""
    readable_names: Callable[[DatabaseName, list[str]], list[str]] | None = None
    """The same for names in one database, asked before a limit is applied: the number of names missing below the limit
    would reveal the others. None: all."""


HandlerFunction = Callable[[Call, Any], Any]
AuditFunction = Callable[[Any], str]
Naming = Callable[[Any], object]
"""What a call is about, derived from its arguments."""


@frozen
class Handler:
    """A method's function: takes the call and the generated `*_args` struct, returns the value of `success`."""

    function: HandlerFunction
    kind: Kind
    audit: AuditFunction
    request: str | None = None
    """The argument that the transaction store takes, if the function only passes it on; empty: all of them, as a
    struct."""


Arguments = TypeVar("Arguments")
Answer = TypeVar("Answer")
Function = TypeVar("Function", bound=HandlerFunction)


def consistent_snapshot(function: Callable[[Call, Arguments], Answer]) -> Callable[[Call, Arguments], Answer]:
    """For a read whose reply combines several reads of the catalog: they must show one position (P1)."""

    @functools.wraps(function)
    def answer(call: Call, arguments: Arguments) -> Answer:
        def answer_from(reads: MetadataReads) -> Answer:
            return function(replace(call, stores=replace(call.stores, reads=reads)), arguments)

        return call.stores.reads.in_one_snapshot(answer_from)

    return answer


_CHANGING = (
    *("add_", "alter_", "append_", "create_", "delete_", "drop_", "exchange_", "grant_", "map_", "mark", "rename_"),
    *("revoke_", "set_", "truncate_", "update_"),
)


def changes_catalog(method: str) -> bool:
    """Whether a write is one that administrators look for, and not one of transactions, locks or the event log."""
    return method.startswith(_CHANGING) and method not in ("set_ugi", "add_write_notification_log")


def _is_about_catalog(method: str) -> bool:
    """Whether a write checks tables and partitions: firing events for missing ones is refused."""
    return changes_catalog(method) or method == "fire_listener_event"


def _showing_state(function: HandlerFunction) -> HandlerFunction:
    """A write that fails, or that finds nothing to do, shows its client the present state of the catalog: a table
    exists, or it does not. Later reads must not show an older state (P3, P4). For a write that logged events this is
    ensured already."""

    @functools.wraps(function)
    def showing_state(call: Call, arguments: Any) -> Any:
        try:
            answer = function(call, arguments)
        except DatabaseUnavailableError:
            raise  # the client learned nothing
        except Exception:
            call.stores.reads.record_other_answer()
            raise
        if not call_context.events:
            call.stores.reads.record_other_answer()
        return answer

    return showing_state


class HandlerTable:
    """Collects the handlers of one module: `handlers = HandlerTable()` and `@handlers.read("get_table", …)`.

    `about`: the audit text is the plain name of the method, followed by this. `audit`: the whole audit text. See
    `default_audit`.
    """

    def __init__(self) -> None:
        self.entries: dict[str, Handler] = {}

    def _register(
        self,
        kind: Kind,
        names: tuple[str, ...],
        about: Naming | None,
        audit: AuditFunction | None,
        request: str | None,
    ) -> Callable[[Function], Function]:
        def register(function: Function) -> Function:
            for name in names:
                if name in self.entries:
                    raise ValueError(f"two handlers for {name}")
                usual = default_audit(name) if about is None else audit_about(name, about)
                self.entries[name] = Handler(function, kind, audit or usual, request)
            return function

        return register

    def local(self, *names: str) -> Callable[[Function], Function]:
        """Registers a function that answers from memory."""
        return self._register(Kind.LOCAL, names, None, None, None)

    def read(
        self, *names: str, about: Naming | None = None, audit: AuditFunction | None = None, request: str | None = None
    ) -> Callable[[Function], Function]:
        """Registers a read."""
        return self._register(Kind.READ, names, about, audit, request)

    def write(
        self, *names: str, about: Naming | None = None, audit: AuditFunction | None = None, request: str | None = None
    ) -> Callable[[Function], Function]:
        """Registers a write. What it reads on the way is committed data, whatever `cache.max_staleness_ms` is."""
        register = self._register(Kind.WRITE, names, about, audit, request)

        def register_write(function: Function) -> Function:
            register(for_write(_showing_state(function) if any(map(_is_about_catalog, names)) else function))
            return function

        return register_write


def _plain_name(method: str) -> str:
    """The name as in Hive's audit log: without `_with_environment_context` and `_req`."""
    return method.removesuffix("_with_environment_context").removesuffix("_req")


def audit_about(method: str, about: Naming) -> AuditFunction:
    """The audit text of a method: its plain name, then what the call is about."""
    plain = _plain_name(method)

    def text(arguments: Any) -> str:
        subject = about(arguments)
        return f"{plain}: {struct_text(subject) if hasattr(subject, 'thrift_spec') else subject}"

    return text


def default_audit(method: str) -> AuditFunction:
    """The audit text of a method: its plain name, then `db=… tbl=…` where its arguments or its request name them."""
    plain = _plain_name(method)

    def text(arguments: Any) -> str:
        names = arguments.__slots__ if hasattr(arguments, "__slots__") else tuple(vars(arguments))
        source = arguments
        if len(names) >= 1:
            first = getattr(arguments, names[0])
            if hasattr(first, "thrift_spec"):
                source = first
        database = _first(source, ("dbname", "db_name", "dbName", "databaseName", "db"))
        table = _first(source, ("tbl_name", "tblName", "tableName", "tablename", "tbl", "name"))
        if database is not None and table is not None:
            return f"{plain} : db={database} tbl={table}"
        single = database if database is not None else table
        return f"{plain}: {single}" if single is not None else plain

    return text


def _first(source: Any, names: tuple[str, ...]) -> str | None:
    for name in names:
        value = getattr(source, name, None)
        if isinstance(value, str):
            return value
    return None
