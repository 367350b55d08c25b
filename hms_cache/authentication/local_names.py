"""Maps Kerberos principals to users: Hadoop's `hadoop.security.auth_to_local`.

The rules are those of Hadoop's KerberosName (hadoop-auth 3.3): the first matching rule decides, and a name without one
is rejected.
"""

from __future__ import annotations

import re

from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.values import frozen

MAX_PRINCIPAL_CHARACTERS = 1024

_RULE = re.compile(r"\s*+(?:(DEFAULT)|RULE:\[(\d+):([^\]]++)\](?:\(([^)]*+)\))?(?:s/([^/]*+)/([^/]*+)/(g)?)?/?(L)?)")
_PRINCIPAL = re.compile(r"([^/@]++)(?:/([^/@]++))?(?:@([^/@]++))?")
_PARAMETER = re.compile(r"\$(\d)")


@frozen
class _Rule:
    components: int
    """0: the rule DEFAULT."""
    form: str = ""
    match: re.Pattern[str] | None = None
    replaced: re.Pattern[str] | None = None
    replacement: str = ""
    everywhere: bool = False
    lower: bool = False

    def applied(self, parts: tuple[str, ...], default_realm: str) -> str | None:
        """:param parts: the realm, then the components."""
        if self.components == 0:
            return parts[1] if parts[0] in ("", default_realm) else None
        if self.components != len(parts) - 1:
            return None
        base = _PARAMETER.sub(lambda found: parts[int(found[1])] if int(found[1]) < len(parts) else "", self.form)
        if self.match is not None and self.match.fullmatch(base) is None:
            return None
        if self.replaced is not None:
            base = self.replaced.sub(self.replacement, base, count=0 if self.everywhere else 1)
        return base.lower() if self.lower else base


class LocalNames:
    """The rules of one server."""

    def __init__(self, rules: str, default_realm: str) -> None:
        """Raises ValueError if the text is not a list of rules."""
        self._default_realm = default_realm
        self._rules: list[_Rule] = []
        position, rules = 0, rules.strip()
        while position < len(rules):
            found = _RULE.match(rules, position)
            if found is None:
                raise ValueError(f"not a rule of auth_to_local: {rules[position:]!r}")
            position = found.end()
            self._rules.append(_rule(found))

    def of(self, principal: str) -> str:
        """The user of a principal. Raises AuthenticationError."""
        found = _PRINCIPAL.fullmatch(principal) if len(principal) <= MAX_PRINCIPAL_CHARACTERS else None
        if found is None:
            raise AuthenticationError("not a name of a Kerberos principal")
        parts = (found[3] or "", found[1], found[2]) if found[2] else (found[3] or "", found[1])
        for rule in self._rules:
            user = rule.applied(parts, self._default_realm)
            if user is not None:
                if not user or "/" in user or "@" in user:
                    raise AuthenticationError(f"auth_to_local maps {principal} to {user!r}, not a user's name")
                return user
        raise AuthenticationError(f"no rule of auth_to_local applies to {principal}")


def _rule(found: re.Match[str]) -> _Rule:
    default, components, form, match, replaced, replacement, everywhere, lower = found.groups()
    if default:
        return _Rule(0)
    try:
        return _Rule(
            int(components),
            form,
            re.compile(match) if match else None,
            re.compile(replaced) if replaced is not None else None,
            _PARAMETER.sub(r"\\g<\1>", (replacement or "").replace("\\", "\\\\")),
            everywhere is not None,
            lower is not None,
        )
    except re.error as error:
        raise ValueError(f"not a pattern of auth_to_local: {error}") from error
