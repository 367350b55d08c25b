"""What must not be shown: names under which secrets are kept, and the values that this process was given.

Secrets are masked twice: where their place is known (a password in a URL, a setting), and by value in whatever is
written (log lines, error texts, tracebacks, pages), so that a text of a driver's or a library's cannot carry one out.
"""

from __future__ import annotations

import html
import json
import re
import threading
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

MASK = "***"

#: Names of settings, properties and URL parameters whose values are nobody's business.
SECRET_NAME = re.compile(
    r"(?i)passw|passwd|passphrase|secret|token(?!\.signature)|credential|bindpw|keytab|\bpwd\b|\bsas\b"
    r"|(?:access|account|api|private|shared).?key(?!.?file)|connection.?string|access.?signature"
)

#: Shorter secrets are masked only where their place is known: by value, a password "hive" would mask half of each log.
SHORTEST_MASKED_BY_VALUE = 6

_lock = threading.Lock()
_known: set[str] = set()
_pattern: re.Pattern[str] | None = None


def is_secret_name(name: str) -> bool:
    """Whether a value under this name is kept to ourselves."""
    return SECRET_NAME.search(name) is not None


def remember(secrets: Iterable[str]) -> None:
    """From now on :func:`redacted` masks these values, in every form in which texts carry them."""
    global _pattern
    forms = {form for secret in secrets if len(secret) >= SHORTEST_MASKED_BY_VALUE for form in _forms(secret)}
    with _lock:
        if forms <= _known:
            return
        _known.update(forms)
        longest_first = sorted(_known, key=len, reverse=True)
        _pattern = re.compile("|".join(re.escape(form) for form in longest_first))


def _forms(secret: str) -> set[str]:
    """As it is, and as URLs, JSON, Python's texts and HTML write it."""
    both_quotes = repr(f"{secret}'\"")[1:-4]  # in a text with both, one kind is escaped
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
    """``text`` with every known secret in it replaced by ``***``."""
    pattern = _pattern
    return text if pattern is None else pattern.sub(MASK, text)
