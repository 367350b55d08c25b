"""Masks secrets: by names under which secrets are stored, and by the values that this process received.

Secrets are masked in two ways: at known places (a password in a URL, a setting), and by value in all output (log lines,
error texts, tracebacks, pages), in case a text of a driver or library contains one.
"""

from __future__ import annotations

import html
import json
import re
import threading
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

MASK = "***"

#: Names of settings, properties and URL parameters whose values are secret.
SECRET_NAME = re.compile(
    r"(?i)passw|passwd|passphrase|secret|token(?!\.signature)|credential|bindpw|keytab|\bpwd\b|\bsas\b"
    r"|(?:access|account|api|private|shared).?key(?!.?file)|connection.?string|access.?signature"
)

#: Shorter secrets are masked only at known places: by value, a password "hive" would mask half of each log.
SHORTEST_MASKED_BY_VALUE = 6

_lock = threading.Lock()
_masked_forms: set[str] = set()
_pattern: re.Pattern[str] | None = None


def is_secret_name(name: str) -> bool:
    """Whether values with this name are secret."""
    return SECRET_NAME.search(name) is not None


def remember(secrets: Iterable[str]) -> None:
    """Makes :func:`redacted` mask these values, in every form in which texts may contain them."""
    global _pattern
    forms = {form for secret in secrets if len(secret) >= SHORTEST_MASKED_BY_VALUE for form in _forms(secret)}
    with _lock:
        if forms <= _masked_forms:
            return
        _masked_forms.update(forms)
        longest_first = sorted(_masked_forms, key=len, reverse=True)
        _pattern = re.compile("|".join(re.escape(form) for form in longest_first))


def _forms(secret: str) -> set[str]:
    """Returns the secret as it is, and as written in URLs, JSON, Python texts and HTML."""
    both_quotes = repr(f"{secret}'\"")[1:-4]  # if a text contains both, one kind is escaped
    as_python = (both_quotes, both_quotes.replace("\\'", "'"), repr(secret.encode())[2:-1])
    as_json = (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    as_url = (
        quote(secret, safe=""),
        quote(secret),
        quote_plus(secret),
        re.sub("[@%]", lambda m: quote(m[0], safe=""), secret),
    )
    as_html = (html.escape(secret), html.escape(secret).replace("&#x27;", "&#39;").replace("&quot;", "&#34;"))
    plain = {secret, *as_python, *as_json, *as_url, *as_html}
    return plain | {json.dumps(form, ensure_ascii=only_ascii)[1:-1] for form in plain for only_ascii in (True, False)}


def redacted(text: str) -> str:
    """Returns ``text`` with every known secret replaced by ``***``."""
    pattern = _pattern
    return text if pattern is None else pattern.sub(MASK, text)
