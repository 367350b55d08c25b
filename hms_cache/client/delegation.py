"""Access for processes without a ticket, such as a Spark job's tasks, by a delegation token that the process with the
ticket obtains."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace

from thrift.Thrift import TApplicationException

from hms_cache.authentication.delegation.token_format import MalformedTokenError, Token, TokenIdentifier
from hms_cache.client.authentication.values import BEARER_VARIABLE, BearerToken, DelegationToken, Kerberos
from hms_cache.client.connection import CONNECT_TIMEOUT_S
from hms_cache.client.errors import CredentialsError
from hms_cache.client.metastore_client import MetastoreClient
from hms_cache.client.metastores import Metastores
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

_USED_S = 4 * 3600.0
"""How long a token is given to new tasks. Hive's tokens are valid for a day unless they are renewed, ours for longer. A
task opens its connections within hours of its planning."""

_PART_OF_LIFE = 0.25
"""The part of its lifetime for which a token with a shorter life is given to new tasks."""

_lock = threading.Lock()
"""Guards `_tokens`. Held while a token is obtained, unlike other locks, so that the threads of a driver that plan tasks
at the same time share one token instead of obtaining one each. No server takes it."""

_tokens: dict[Metastores, tuple[Token, float]] = {}
"""Tokens of this process, each with the time (monotonic clock) until which it is given to new tasks."""


def for_tasks(metastores: Metastores) -> Metastores:
    """The same metastores for processes on other machines, which have the named files but not this user's tickets. A
    token that the result contains is not shown in its text. It may be sent wherever Spark sends its own tokens.

    Raises CredentialsError, MetastoreUnavailableError, AuthenticationRefusedError.
    """
    how = metastores.authentication
    if isinstance(how, Kerberos):
        return replace(metastores, authentication=DelegationToken(_token(metastores, how), qualities=how.qualities))
    if isinstance(how, DelegationToken) and how.token is None:
        return replace(metastores, authentication=replace(how, token=how.read()))
    if isinstance(how, BearerToken) and not how.token_file and not how.token:
        return replace(metastores, authentication=replace(how, token=os.environ.get(BEARER_VARIABLE, "")))
    return metastores


def _token(metastores: Metastores, how: Kerberos) -> Token:
    with _lock:
        token, until_s = _tokens.get(metastores, (None, 0.0))
        if token is None or time.monotonic() >= until_s:
            began_s = time.monotonic()
            token = _asked(metastores, how)
            _tokens[metastores] = token, began_s + min(_USED_S, _PART_OF_LIFE * _life_s(token))
        return token


def _asked(metastores: Metastores, how: Kerberos) -> Token:
    owner = how.ticket.principal(CONNECT_TIMEOUT_S)
    with MetastoreClient(metastores) as client:
        try:
            return Token.from_url(client.call("get_delegation_token", owner, owner))
        except (MetaException, TApplicationException) as error:
            reason = str(getattr(error, "message", None) or error)
        except MalformedTokenError:
            reason = "its answer is not a token"
    raise CredentialsError(
        f"the metastore did not issue a delegation token, which tasks without a ticket need to authenticate: {reason}"
    )


def _life_s(token: Token) -> float:
    try:
        found = TokenIdentifier.decoded(token.identifier)
    except MalformedTokenError:
        return 0.0
    return max(0.0, (found.max_ms - found.issued_ms) / 1000)
