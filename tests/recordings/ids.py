"""Ids assigned by a metastore, mapped to those that another one assigned instead.

A recording's requests name transactions, locks, tables and compactions by the ids of the recorded metastore. Another
may assign others: those in its answers are learnt, kind by kind, and put into the following requests. Each id
corresponds to exactly one other, so a metastore that assigns an id twice, or confuses two, is detected.
"""

from __future__ import annotations

from typing import Any

from thrift.protocol.TBase import TBase

from hms_cache.wire import METHODS
from tests.recordings.messages import EXCEPTION, read_message
from tests.recordings.spellings import body, encoded

#: Field to kind. `id` depends on the struct, see `_kind`.
_KINDS = {
    **dict.fromkeys(("txnid", "txnId", "txn_ids", "txnIds", "txnid_", "cqTxnId"), "transaction"),
    **dict.fromkeys(("lockid", "lockId", "lockid_", "blockedByExtId"), "lock"),
    **dict.fromkeys(("tableId",), "table"),
    **dict.fromkeys(("compactionId",), "compaction"),
}
_BY_STRUCT = {
    ("Table", "id"): "table",
    ("GetTableRequest", "id"): "table",
    ("GetPartitionsByNamesRequest", "id"): "table",
    ("PartitionsByExprRequest", "id"): "table",
    ("CompactionResponse", "id"): "compaction",
    ("CompactionInfoStruct", "id"): "compaction",
    ("ShowCompactResponseElement", "id"): "compaction",
}


class Ids:
    """The pairs of one replay."""

    def __init__(self) -> None:
        self._pairs: dict[str, dict[int, int]] = {}
        self._back: dict[str, dict[int, int]] = {}

    @property
    def differing(self) -> dict[str, dict[int, int]]:
        """Kind to the recorded ids that differ here."""
        return {
            kind: {one: other for one, other in pairs.items() if one != other}
            for kind, pairs in self._pairs.items()
            if any(one != other for one, other in pairs.items())
        }

    def learn(self, recorded: Any, found: Any) -> list[str]:
        """Walks two answers in parallel. Returns where an id corresponds to two others."""
        faults: list[str] = []
        self._walk(recorded, found, "", faults)
        return faults

    def _walk(self, recorded: Any, found: Any, kind: str, faults: list[str]) -> None:
        if isinstance(recorded, TBase) and type(recorded) is type(found):
            for name in type(recorded).__slots__:
                self._walk(getattr(recorded, name), getattr(found, name), kind_of(recorded, name), faults)
        elif isinstance(recorded, list) and isinstance(found, list) and len(recorded) == len(found):
            for one, other in zip(recorded, found, strict=True):
                self._walk(one, other, kind, faults)
        elif kind and type(recorded) is int and type(found) is int and recorded > 0 and found > 0:
            there, back = self._pairs.setdefault(kind, {}), self._back.setdefault(kind, {})
            if there.setdefault(recorded, found) != found or back.setdefault(found, recorded) != recorded:
                faults.append(f"{kind} {recorded} is {found}, and {there[recorded]}")

    def in_reply(self, method: str, reply: bytes) -> bytes:
        """A recorded answer with this metastore's ids."""
        if not self.differing or not reply:
            return reply
        message = read_message(reply)
        if message.kind == EXCEPTION:
            return reply
        result, is_changed = self.translated(body(reply, METHODS[method].result))
        return encoded(method, message.kind, message.sequence_id, result) if is_changed else reply

    def translated(self, value: Any, kind: str = "") -> tuple[Any, bool]:
        """A request's arguments with this metastore's ids, and whether any differs."""
        if isinstance(value, TBase):
            is_changed = False
            for name in type(value).__slots__:
                other, differs = self.translated(getattr(value, name), kind_of(value, name))
                if differs:
                    setattr(value, name, other)
                    is_changed = True
            return value, is_changed
        if isinstance(value, list):
            pairs = [self.translated(one, kind) for one in value]
            return [one for one, _ in pairs], any(differs for _, differs in pairs)
        if kind and type(value) is int:
            other = self._pairs.get(kind, {}).get(value, value)
            return other, other != value
        return value, False


def kind_of(struct: Any, name: str) -> str:
    """The kind of id in the field; empty for other fields."""
    return _BY_STRUCT.get((type(struct).__name__, name)) or _KINDS.get(name, "")
