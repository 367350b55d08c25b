"""Decisions of a policy service over HTTP, in the format of the Open Policy Agent.

A request is a POST to the address of a rule, with ``{"input": {"principal": "ann", "groups": ["analysts"],
"directory_groups": ["staff"], "checks": [{"action": "read", "catalog": "hive", "database": "sales", "table":
"orders"}, …]}}``. ``groups`` are those of a bearer token, ``directory_groups`` those of a directory. The answer is
``{"result": [true, …]}``, with one value per check. Any other answer, or none in time, denies.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from hms_cache.authorization.cached_groups import Principal
from hms_cache.authorization.decisions import METASTORE, NO_GROUPS, AccessCheck, Action, SecuredObject, UndecidedError
from hms_cache.batches import batches
from hms_cache.limited_log import LimitedLog
from hms_cache.socket_deadlines import opened_within
from hms_cache.values import frozen

_logger = logging.getLogger(__name__)

SCHEMES = ("http", "https")
MAX_CHECKS_PER_REQUEST = 1000
"""Maximum number of checks in a request; more are sent in several. Such a document has some 150 kB."""

MAX_ANSWER_BYTES = 64 * 1024
"""Maximum size of an answer: a thousand values take 7 kB."""

MAX_REMEMBERED = 100_000
"""Maximum number of remembered decisions about one principal; some 20 MB."""

SHOW = "show"
"""In place of an action: whether the existence of a database or catalog may be known."""


@frozen
class ServiceOptions:
    """Address and limits of the service."""

    url: str
    timeout_s: float
    """Time limit for a whole answer, from connecting on."""
    ca_file: str | None = None
    """Certificate authorities for https addresses; None: those of the system."""
    token: Callable[[], str | None] = field(default=lambda: None)
    """Value for the header Authorization, read anew for each request."""
    max_at_once: int = 16
    """Maximum number of concurrent requests; others wait, at most `timeout_s`."""


class PolicyService:
    """A client of the service. Thread-safe. Keeps no connections: each decision is asked for once per epoch."""

    def __init__(self, options: ServiceOptions) -> None:
        """Raises ValueError if the address is not http or https, OSError if the file of authorities is invalid."""
        parts = urllib.parse.urlsplit(options.url)
        if parts.scheme not in SCHEMES or not parts.hostname:
            raise ValueError(f"{options.url!r} is not an address of http or https")
        self._options = options
        self._host, self._port = parts.hostname, parts.port
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._tls = ssl.create_default_context(cafile=options.ca_file) if parts.scheme == "https" else None
        self._places = threading.BoundedSemaphore(options.max_at_once)
        self._log = LimitedLog(_logger)
        self.outcomes = {"ok": 0, "failed": 0}

    def decide(
        self,
        principal: str,
        checks: Sequence[AccessCheck],
        groups: frozenset[str] = NO_GROUPS,
        directory_groups: frozenset[str] = NO_GROUPS,
    ) -> list[bool]:
        """Returns one answer per check. Raises UndecidedError."""
        answers: list[bool] = []
        ends_at_s = time.monotonic() + self._options.timeout_s
        for requested in batches(checks, MAX_CHECKS_PER_REQUEST):
            answers += self._query(_document(principal, groups, directory_groups, requested), len(requested), ends_at_s)
        return answers

    def _query(self, document: bytes, count: int, ends_at_s: float) -> list[bool]:
        if not self._places.acquire(timeout=max(0.0, ends_at_s - time.monotonic())):
            self.outcomes["failed"] += 1
            raise UndecidedError("the policy service is busy")
        try:
            found = self._read(document, ends_at_s)
            if not isinstance(found, list) or len(found) != count:
                raise UndecidedError(f"its result is not a list of {count} answers")
            if not all(isinstance(one, bool) for one in found):
                raise UndecidedError("its answers are not all true or false")
        except (UndecidedError, OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            self.outcomes["failed"] += 1
            self._log.warning("the policy service did not decide: %s", error)
            raise UndecidedError("the policy service does not answer as it should") from error
        finally:
            self._places.release()
        self.outcomes["ok"] += 1
        return found

    def _read(self, document: bytes, ends_at_s: float) -> Any:
        remaining_s = ends_at_s - time.monotonic()
        if remaining_s <= 0:
            raise UndecidedError("no answer in time")
        # A socket's timeout applies to each read: an answer in small pieces would have no limit. This limit is for all
        # of it.
        with opened_within(remaining_s) as sockets, contextlib.closing(self._link(remaining_s)) as link:
            link._create_connection = sockets.connect
            headers = {"Content-Type": "application/json"}
            token = self._options.token()
            if token:
                headers["Authorization"] = f"Bearer {token}"
            link.request("POST", self._path, document, headers)
            answer = link.getresponse()
            body = answer.read(MAX_ANSWER_BYTES + 1)
            if answer.status != http.HTTPStatus.OK:
                raise UndecidedError(f"status {answer.status}")
            if len(body) > MAX_ANSWER_BYTES:
                raise UndecidedError(f"its answer is longer than {MAX_ANSWER_BYTES} bytes")
            if time.monotonic() > ends_at_s:
                raise UndecidedError("no answer in time")
        found = json.loads(body)
        return found.get("result") if isinstance(found, dict) else None

    def _link(self, timeout_s: float) -> Any:
        if self._tls is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout_s, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)


def _document(
    principal: str, groups: frozenset[str], directory_groups: frozenset[str], checks: Sequence[AccessCheck]
) -> bytes:
    requested = [
        {"action": SHOW if action is None else action.value, "catalog": of[0], "database": of[1], "table": of[2]}
        for action, of in checks
    ]
    about = {"principal": principal, "groups": sorted(groups), "directory_groups": sorted(directory_groups)}
    return json.dumps({"input": {**about, "checks": requested}}).encode()


class ServiceDecisionSource:
    """See `DecisionSource`. Remembers answers: it lives as long as its decisions may be used."""

    has_any = True
    """Always true: a policy service cannot be asked whether anything is granted to a user."""

    def __init__(self, service: PolicyService, principal: Principal) -> None:
        self._service = service
        self._principal = principal
        self._cached: dict[AccessCheck, bool] = {}

    @property
    def held(self) -> int:
        """The number of remembered decisions."""
        return len(self._cached)

    def prepare(self, checks: Sequence[AccessCheck]) -> None:
        """Requests the decisions that are not cached yet. Raises UndecidedError."""
        unknown = list(dict.fromkeys(one for one in checks if one not in self._cached))
        if unknown:
            if len(self._cached) + len(unknown) > MAX_REMEMBERED:
                self._cached = {}
            self._cached.update(zip(unknown, self._query(unknown), strict=True))

    def allow(self, action: Action, of: SecuredObject) -> bool:
        """Whether the principal may perform the action. Raises UndecidedError."""
        return self._decide((action, of))

    def show(self, what: SecuredObject) -> bool:
        """Whether the principal may know that the object exists. Raises UndecidedError."""
        return self._decide((None, what))

    def may_grant(self, privilege: str | None, of: SecuredObject) -> bool:
        """Whether the principal may manage the metastore. Raises UndecidedError."""
        return self._decide((Action.MANAGE, METASTORE))

    def _decide(self, check: AccessCheck) -> bool:
        cached = self._cached.get(check)
        if cached is None:
            cached = self._query([check])[0]
            if len(self._cached) < MAX_REMEMBERED:
                self._cached[check] = cached
        return cached

    def _query(self, checks: Sequence[AccessCheck]) -> list[bool]:
        """Queries the service. Raises UndecidedError."""
        principal = self._principal
        return self._service.decide(principal.name, checks, principal.token_groups, principal.directory_groups())
