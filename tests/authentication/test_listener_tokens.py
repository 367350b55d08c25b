"""The file of listeners' tokens."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from hms_cache.authentication.listener_tokens import ListenerTokens, ListenerTokensError

TOKEN = "0123456789abcdef"


def digest(token: str) -> str:
    return f"sha256:{hashlib.sha256(token.encode()).hexdigest()}"


def test_tokens_and_digests_name_users(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    other, third = TOKEN[::-1], TOKEN * 2
    path.write_text(f"# who\n\nann {TOKEN}\n  ann\t{other}  \nbob {digest(third)}\nann {digest(TOKEN)}\n")
    tokens = ListenerTokens(path)
    assert [tokens.user_of(one) for one in (TOKEN, other, third)] == ["ann", "ann", "bob"]
    for nobody in ("", "ann", TOKEN[:-1], digest(third), digest(third)[7:], f"{TOKEN}\n"):
        assert tokens.user_of(nobody) is None, nobody
    assert ListenerTokens(None).user_of(TOKEN) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ann\n", "line 1: needs"),
        (f"# x\nann {TOKEN} more\n", "line 2: needs"),
        (f"ann {TOKEN[:-1]}\n", "line 1: a token has"),
        ("ann sha256:0011\n", "line 1: a token has"),
        (f"ann {digest(TOKEN).upper()}\nbob {digest(TOKEN)[:-1]}g\n", "line 2: a token has"),
        (f"ann {TOKEN}\nbob {digest(TOKEN)}\n", "line 2: the token of another"),
        (f"{'a' * 5000} {TOKEN}\n", "line 1: the first word"),
        ("\udcff", "codec"),
    ],
)
def test_what_is_no_such_file_changes_nothing(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"ann {TOKEN}\n")
    tokens = ListenerTokens(path)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ListenerTokensError, match=told) as raised:
        tokens.replace_tokens(tokens.read(path))
    assert TOKEN not in str(raised.value)
    assert tokens.user_of(TOKEN) == "ann"
    with pytest.raises(ListenerTokensError, match="No such file"):
        tokens.replace_tokens(tokens.read(tmp_path / "none"))
