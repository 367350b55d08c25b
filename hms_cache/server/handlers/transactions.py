"""Locks, transactions, write ids and compactions: each spelling goes to the transaction store as it came."""

from __future__ import annotations

from typing import Any

from hms_cache.server.calls import Call, HandlerTable

handlers = HandlerTable()


@handlers.write("lock", audit=lambda a: "lock")
def lock(call: Call, arguments: Any) -> Any:
    return call.stores.transactions.lock(arguments.rqst)


@handlers.write("check_lock")
def check_lock(call: Call, arguments: Any) -> Any:
    return call.stores.transactions.check_lock(arguments.rqst)


@handlers.write("unlock")
def unlock(call: Call, arguments: Any) -> None:
    call.stores.transactions.unlock(arguments.rqst)


@handlers.read("show_locks")
def show_locks(call: Call, arguments: Any) -> Any:
    return call.stores.transactions.show_locks(arguments.rqst)


@handlers.write("heartbeat")
def heartbeat(call: Call, arguments: Any) -> None:
    call.stores.transactions.heartbeat(arguments.ids)
