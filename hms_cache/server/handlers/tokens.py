"""Delegation tokens and master keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hms_cache.authentication.delegation.token_manager import Caller, TokenError, TokenManager
from hms_cache.server.calls import Call, HandlerTable
from hms_cache.store.security.tokens import Tokens
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

handlers = HandlerTable()


def _tokens(call: Call) -> Tokens:
    """Raises MetaException while these calls are off, which is the default: anyone who can connect could forge tokens
    for every Kerberized server on the database. Hive's server leaves this port to authenticated clients."""
    tokens = call.stores.auxiliary.tokens
    if not tokens.enabled:
        raise MetaException(
            "The keys and texts of delegation tokens are not served. Set security.delegation_tokens to true only where"
            " everybody who may send this call may act as anyone."
        )
    return tokens


@handlers.write("add_token", about=lambda a: a.token_identifier)
def add_token(call: Call, arguments: methods.add_token_args) -> bool:
    return _tokens(call).add_token(arguments.token_identifier, arguments.delegation_token)


@handlers.write("remove_token", about=lambda a: a.token_identifier)
def remove_token(call: Call, arguments: methods.remove_token_args) -> bool:
    return _tokens(call).remove_token(arguments.token_identifier)


@handlers.read("get_token", audit=lambda a: f"get_token for: {a.token_identifier}")
def get_token(call: Call, arguments: methods.get_token_args) -> str:
    return _tokens(call).get_token(arguments.token_identifier)


@handlers.read("get_all_token_identifiers")
def get_all_token_identifiers(call: Call, arguments: methods.get_all_token_identifiers_args) -> list[str]:
    return _tokens(call).get_all_token_identifiers()


@handlers.write("add_master_key", audit=lambda a: "add_master_key")
def add_master_key(call: Call, arguments: methods.add_master_key_args) -> int:
    return _tokens(call).add_master_key(arguments.key)


@handlers.write("update_master_key", audit=lambda a: "update_master_key")
def update_master_key(call: Call, arguments: methods.update_master_key_args) -> None:
    _tokens(call).update_master_key(arguments.seq_number, arguments.key)


@handlers.write("remove_master_key", audit=lambda a: "remove_master_key")
def remove_master_key(call: Call, arguments: methods.remove_master_key_args) -> bool:
    return _tokens(call).remove_master_key(arguments.key_seq)


@handlers.read("get_master_keys", audit=lambda a: "get_master_keys")
def get_master_keys(call: Call, arguments: methods.get_master_keys_args) -> list[str]:
    return _tokens(call).get_master_keys()


@contextmanager
def _manager(call: Call) -> Iterator[tuple[TokenManager, Caller]]:
    """Raises MetaException if clients cannot authenticate, and for what the manager refuses."""
    if call.stores.delegation is None:
        raise MetaException("Delegation Token can be issued only with kerberos authentication")
    session = call.session
    caller = Caller(session.user, session.principal or "", session.peer, session.mechanism == "GSSAPI")
    try:
        yield call.stores.delegation, caller
    except TokenError as error:
        raise MetaException(str(error)) from error


@handlers.write("get_delegation_token", about=lambda a: f"owner={a.token_owner}")
def get_delegation_token(call: Call, arguments: methods.get_delegation_token_args) -> str:
    with _manager(call) as (manager, caller):
        return manager.issue(caller, arguments.token_owner or "", arguments.renewer_kerberos_principal_name or "")


@handlers.write("renew_delegation_token", audit=lambda a: "renew_delegation_token")
def renew_delegation_token(call: Call, arguments: methods.renew_delegation_token_args) -> int:
    with _manager(call) as (manager, caller):
        return manager.renew(caller, arguments.token_str_form or "")


@handlers.write("cancel_delegation_token", audit=lambda a: "cancel_delegation_token")
def cancel_delegation_token(call: Call, arguments: methods.cancel_delegation_token_args) -> None:
    with _manager(call) as (manager, caller):
        manager.cancel(caller, arguments.token_str_form or "")
