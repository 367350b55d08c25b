"""Access for processes without a ticket, such as a Spark job's tasks, by a delegation token that the process with the
ticket obtains, and cancels when the job has ended."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace

from thrift.Thrift import TApplicationException

from hms_cache.authentication.delegation.token_format import MalformedTokenError, Token, TokenIdentifier
from hms_cache.client.authentication.values import BEARER_VARIABLE, BearerToken, DelegationToken, Kerberos
from hms_cache.client.connection import CONNECT_TIMEOUT_S
from hms_cache.client.errors import CredentialsError
from hms_cache.client.metastore_client import MetastoreClient
from hms_cache.client.metastores import Metastores
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException
from hms_cache.values import frozen

_log = logging.getLogger(__name__)

_USED_S = 4 * 3600.0
"""How long a token is given to new tasks. Hive's tokens are valid for a day unless they are renewed, ours for longer. A
task opens its connections within hours of its planning."""

_PART_OF_LIFE = 0.25
"""The part of its lifetime for which a token with a shorter life is given to new tasks."""

_CANCEL_S = 10.0
"""Maximum time that a process waits for its tokens to be cancelled: what is not cancelled ends by itself."""

_THREAD = "hms-cancel-tokens"
"""Name of the threads that do it."""

_lock = threading.Lock()
"""Guards what follows. Held while a token is obtained, unlike other locks, so that the threads of a driver that plan
tasks at the same time share one token instead of obtaining one each. No server takes it."""

_tokens: dict[Metastores, tuple[Token, float]] = {}
"""Tokens of this process, each with the time (monotonic clock) until which it is given to new tasks."""

_holders = 0
"""Number of callers of `hold_tokens` that have not released them."""

_to_cancel: list[tuple[Metastores, Token]] = []
"""Tokens that were obtained meanwhile."""


@frozen
class TransferredToken:
    """A token for another process on this machine that obtains tokens for tasks."""

    token: Token = field(repr=False)
    used_until_s: float
    """Seconds since 1970 until which it is given to new tasks."""


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


@contextmanager
def cancelling_tokens() -> Iterator[None]:
    """`hold_tokens` and `release_tokens`, the latter also at SIGTERM."""
    hold_tokens()
    handles = release_tokens_on_sigterm()
    try:
        yield
    finally:
        release_tokens()
        if handles:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def hold_tokens() -> None:
    """The tokens that this process obtains from now on are cancelled by `release_tokens`."""
    global _holders
    with _lock:
        _holders += 1


def release_tokens() -> None:
    """Cancels the tokens that were obtained since `hold_tokens`; if others hold tokens, too, the last of them does:
    their tasks share tokens. Never fails, and takes a limited time."""
    global _holders
    with _lock:
        _holders -= 1
        over = [] if _holders else _claimed_tokens()
    if over:
        # A KDC, or a metastore that does not answer, delays nobody for longer.
        thread = threading.Thread(target=_cancel, args=(over,), name=_THREAD, daemon=True)
        thread.start()
        thread.join(_CANCEL_S)


def release_tokens_on_sigterm() -> bool:
    """Makes SIGTERM cancel the tokens that this process holds before it ends the process. Returns False, without an
    effect, outside of the main thread, and if the signal is handled already."""
    is_main = threading.current_thread() is threading.main_thread()
    is_possible = is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if is_possible:
        signal.signal(signal.SIGTERM, _release_and_exit)
    return is_possible


def _release_and_exit(number: int, frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)
    # In another thread: the one that was interrupted may hold the lock.
    threading.Thread(target=_cancel_held, name=_THREAD, daemon=True).start()
    end_s = time.monotonic() + _CANCEL_S
    for thread in threading.enumerate():
        if thread.name == _THREAD:
            thread.join(max(0.0, end_s - time.monotonic()))
    os._exit(128 + number)


def _cancel_held() -> None:
    with _lock:
        over = _claimed_tokens()
    _cancel(over)


def tokens_to_transfer(metastores: Iterable[Metastores]) -> Mapping[Metastores, TransferredToken]:
    """Tokens for `use_transferred`, of those that take one. Raises as `for_tasks`."""
    found: dict[Metastores, TransferredToken] = {}
    for one in metastores:
        if isinstance(one.authentication, Kerberos):
            token = _token(one, one.authentication)
            remaining_s = _tokens.get(one, (token, 0.0))[1] - time.monotonic()
            found[one] = TransferredToken(token, time.time() + remaining_s)
    return found


def use_transferred(tokens: Mapping[Metastores, TransferredToken]) -> None:
    """This process gives these tokens to new tasks instead of its own. Whoever has handed them cancels them."""
    with _lock:
        for metastores, transferred in tokens.items():
            _tokens[metastores] = transferred.token, time.monotonic() + transferred.used_until_s - time.time()


def _claimed_tokens() -> list[tuple[Metastores, Token]]:
    """The tokens that are to be cancelled; none of them is given to tasks any more. Called under the lock."""
    over = list(_to_cancel)
    _to_cancel.clear()
    for metastores, token in over:
        if _tokens.get(metastores, (None, 0.0))[0] == token:
            del _tokens[metastores]
    return over


def _token(metastores: Metastores, how: Kerberos) -> Token:
    with _lock:
        token, until_s = _tokens.get(metastores, (None, 0.0))
        if token is None or time.monotonic() >= until_s:
            began_s = time.monotonic()
            token = _requested(metastores, how)
            _tokens[metastores] = token, began_s + min(_USED_S, _PART_OF_LIFE * _life_s(token))
            if _holders:
                _to_cancel.append((metastores, token))
        return token


def _cancel(tokens: list[tuple[Metastores, Token]]) -> None:
    for metastores, token in tokens:
        how = metastores.authentication
        assert isinstance(how, Kerberos)
        # With the token itself: a ticket may have expired in a long job.
        access = replace(metastores, authentication=DelegationToken(token, qualities=how.qualities))
        try:
            with MetastoreClient(access, connect_timeout_s=_CANCEL_S, call_timeout_s=_CANCEL_S) as client:
                client.call("cancel_delegation_token", token.to_url())
        except Exception as error:
            _log.info("a delegation token of %s could not be cancelled and ends by itself: %s", metastores, error)


def _requested(metastores: Metastores, how: Kerberos) -> Token:
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
