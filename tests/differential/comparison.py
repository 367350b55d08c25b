"""Sends the same calls to two metastores and compares their answers.

Answers are compared after decoding. Values that cannot be equal are replaced by a mark that only shows whether they are
present: times, ids from the database, the directory of a metastore's warehouse.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from thrift.protocol.TBase import TBase
from thrift.Thrift import TApplicationException, TException

from hms_cache.client import MetastoreUnavailableError, OutcomeUnknownError
from tests.differential.reasons import reason_for

TIME = "<time>"
ID = "<id>"
_TIMES = frozenset(
    {"createTime", "lastAccessTime", "lastAnalyzed", "eventTime", "createdTime", "materializationTime", "grantTime"}
)
_TXN_TIMES = frozenset(
    {"startedTime", "lastHeartbeatTime", "enqueueTime", "start", "endTime", "cleanerStart", "commitTime", "acquiredat"}
)
_TIME_PARAMETERS = frozenset({"transient_lastDdlTime"})
_IN_NO_ORDER = frozenset({"get_tables", "get_all_tables", "get_tables_by_type", "get_databases"})
"""Java lists these as its database has them; ours are sorted."""
_IDS = frozenset({"id", "tableId"})
WAREHOUSE = "{warehouse}"
"""In an argument: the URI of the metastore's own warehouse directory. Answers have it in its place."""


class Metastore(Protocol):
    """The receiver of calls."""

    warehouse_uri: str
    kept: dict[str, Any]
    """Answers by the names under which calls keep them."""

    def call(self, method: str, *arguments: Any) -> Any: ...

    def begin_anew(self) -> None: ...


@dataclass(frozen=True)
class Kept:
    """An argument: the metastore's own answer to the call that stored its answer under this name."""

    name: str


@dataclass(frozen=True)
class Call:
    """One request, and what is known about its answers."""

    method: str
    arguments: tuple[Any, ...]
    differs: str = ""
    """Why ours is right where the answers differ; empty: they must not."""
    java_spelling: tuple[str, tuple[Any, ...], Callable[[Any], Any]] | None = None
    """Method, arguments, and how its answer is taken apart, where Hive 4.0.1 has no such method any more."""
    is_message_compared: bool = False
    """Whether clients look at the text of the exception. Texts that say the same with names in another spelling are
    never equal."""
    is_ordered: bool = True
    """False: the answer is a list in no order."""
    is_answer_compared: bool = True
    """False: only whether it fails, and how."""
    is_on_new_connection: bool = False
    """Java takes some settings of a connection over when it first uses its database for it."""
    keeps: str = ""
    """The name to keep the answer under, an id that the database gives; it is compared by its presence."""


def call(method: str, *arguments: Any, **expectations: Any) -> Call:
    """A call as it would be written."""
    return Call(method, arguments, **{"is_ordered": method not in _IN_NO_ORDER, **expectations})


@dataclass(frozen=True)
class Scenario:
    """A sequence of calls on an initially empty catalog."""

    name: str
    calls: tuple[Call, ...]

    @classmethod
    def of(cls, name: str, *calls: Call | Iterable[Call]) -> Scenario:
        """From calls and lists of calls."""
        flat: list[Call] = []
        for item in calls:
            flat.extend([item] if isinstance(item, Call) else item)
        return cls(name, tuple(flat))


@dataclass(frozen=True)
class Outcome:
    """A decoded answer, or the exception's type and text."""

    value: Any = None
    error: str = ""
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.error}: {self.text}" if self.error else repr(self.value)


@dataclass(frozen=True)
class Comparison:
    """The results of one call."""

    call: Call
    java: Outcome
    ours: Outcome

    @property
    def is_equal(self) -> bool:
        if self.java != self.ours:
            return False
        java, ours = self.java.text, self.ours.text
        if java == ours or self.java.error.startswith("TApplicationException"):
            return True  # for errors, the protocol only defines the kind
        return not self.call.is_message_compared and java.lower() != ours.lower()

    @property
    def reason(self) -> str:
        """Returns why the answers differ; empty if they are equal, or no reason is known."""
        return "" if self.is_equal else reason_for(self.call, self.java, self.ours)

    @property
    def is_as_expected(self) -> bool:
        """Whether the answers are equal, or differ for a known reason; a case with a declared difference must
        differ."""
        return not self.call.differs if self.is_equal else bool(self.reason)

    def __str__(self) -> str:
        requested = ", ".join(_short(plain(argument)) for argument in self.call.arguments)
        lines = [f"{self.call.method}({requested})"]
        if self.java.error or self.ours.error:
            lines += [f"  java: {_short(self.java)}", f"  ours: {_short(self.ours)}"]
        else:
            lines += [f"  {line}" for line in differences(self.java.value, self.ours.value)]
        return "\n".join(lines)


def _short(value: object, limit: int = 300) -> str:
    text = str(value) if isinstance(value, Outcome) else repr(value)
    return text if len(text) <= limit else f"{text[:limit]}…"


def differences(java: Any, ours: Any, path: str = "") -> list[str]:
    """Where two plain values differ, a line for each place."""
    if java == ours:
        return []
    if isinstance(java, dict) and isinstance(ours, dict):
        return [
            line
            for key in sorted({*java, *ours}, key=str)
            for line in differences(java.get(key, "<unset>"), ours.get(key, "<unset>"), f"{path}.{key}")
        ]
    if isinstance(java, list) and isinstance(ours, list) and len(java) == len(ours):
        return [
            line
            for index, (one, other) in enumerate(zip(java, ours, strict=True))
            for line in differences(one, other, f"{path}[{index}]")
        ]
    return [f"{path or 'answer'}: java {_short(java)}, ours {_short(ours)}"]


def run(scenario: Scenario, java: Metastore, ours: Metastore) -> list[Comparison]:
    """Sends each call to both, one after the other."""
    return [compare(step, java, ours) for step in scenario.calls]


def compare(step: Call, java: Metastore, ours: Metastore) -> Comparison:
    """Sends one call to both."""
    if step.is_on_new_connection:
        java.begin_anew()
        ours.begin_anew()
    found = Comparison(step, _outcome(step, java, is_java=True), _outcome(step, ours))
    if found.java.error:
        java.begin_anew()
    return found


def _outcome(step: Call, metastore: Metastore, *, is_java: bool = False) -> Outcome:
    method, arguments, unwrap = step.method, step.arguments, None
    if is_java and step.java_spelling is not None:
        method, arguments, unwrap = step.java_spelling
    try:
        filled = (metastore.kept[one.name] if isinstance(one, Kept) else one for one in arguments)
        value = metastore.call(method, *(_filled(argument, metastore.warehouse_uri) for argument in filled))
        if unwrap is not None:
            value = unwrap(value)
    except TApplicationException as error:
        if error.type == TApplicationException.MISSING_RESULT and not step.is_answer_compared:
            return Outcome()  # void in 4.0.1, a value later
        # Which of Hive's texts for an unexpected failure it is; the protocol only defines the kind.
        return Outcome(error=f"TApplicationException {error.type}", text=str(error.message))
    except (MetastoreUnavailableError, OutcomeUnknownError):
        # A missing required field makes Java's reader close the connection; so does an Error in Java.
        return Outcome(error="connection closed")
    except TException as error:
        return Outcome(
            error=type(error).__name__, text=_without_place(str(getattr(error, "message", error)), metastore)
        )
    if step.keeps:
        metastore.kept[step.keeps] = value
        return Outcome(ID if value else None)
    if not step.is_answer_compared:
        return Outcome()
    found = plain(value, metastore.warehouse_uri)
    return Outcome(found if step.is_ordered else _sorted(found))


def _filled(value: Any, warehouse_uri: str) -> Any:
    """A copy with the warehouse's directory inserted."""
    if isinstance(value, str):
        return value.replace(WAREHOUSE, warehouse_uri)
    if isinstance(value, list | tuple):
        return type(value)(_filled(item, warehouse_uri) for item in value)  # a tuple is a key of a map
    if isinstance(value, dict):
        return {_filled(key, warehouse_uri): _filled(item, warehouse_uri) for key, item in value.items()}
    if isinstance(value, TBase):
        filled = copy.copy(value)
        for name in type(value).__slots__:
            setattr(filled, name, _filled(getattr(value, name), warehouse_uri))
        return filled
    return value


def plain(value: Any, warehouse_uri: str = "") -> Any:
    """Returns comparable dicts, lists and scalars: without unset fields, with marks for times and ids."""
    if isinstance(value, TBase):
        fields = {name: getattr(value, name) for name in type(value).__slots__}
        # Java always writes plain numbers and truth values: unset ones are 0 or false there.
        return {
            name: _field(name, item, warehouse_uri)
            for name, item in fields.items()
            if item is not None and item is not False and item != 0
        }
    if isinstance(value, Mapping):
        return {
            plain(key, warehouse_uri): TIME if key in _TIME_PARAMETERS else plain(item, warehouse_uri)
            for key, item in value.items()
        }
    if isinstance(value, tuple):
        return tuple(plain(item, warehouse_uri) for item in value)  # a key of a map
    if isinstance(value, list):
        return [plain(item, warehouse_uri) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(plain(item, warehouse_uri) for item in value)
    if isinstance(value, str):
        return _without_directory(value, warehouse_uri)
    return value


def _field(name: str, value: Any, warehouse_uri: str) -> Any:
    if name in _TIMES | _TXN_TIMES and isinstance(value, int) and value > 0:
        return TIME
    if name in _IDS and isinstance(value, int) and value > 0:
        return ID
    return plain(value, warehouse_uri)


def _without_directory(text: str, warehouse_uri: str) -> str:
    if not warehouse_uri:
        return text
    path = re.sub(r"^file:/+", "/", warehouse_uri)
    return re.sub(rf"(file:/{{0,2}})?{re.escape(path)}", WAREHOUSE, text)


def _without_place(text: str, metastore: Metastore) -> str:
    return _without_directory(text, metastore.warehouse_uri)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(item) for key, item in value.items()}
    return sorted(value, key=repr) if isinstance(value, list) else value
