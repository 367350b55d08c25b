"""What refuses a client's input because of its size has a setting: no module keeps such a number to itself.

Looked for are constants of modules that are compared with something, where the outcome raises an error.
"""

from __future__ import annotations

import ast
from pathlib import Path

from tests.architecture.test_import_direction import PACKAGE, modules

CLIENTS = frozenset(
    {
        *("authentication", "authorization", "cache", "expressions", "metadata", "notifications", "patterns"),
        *("server", "store", "txn", "wire"),
    }
)
"""Packages that clients' input reaches."""

FRAMES = "recursion: the interpreter has 1,000 frames, and a setting could only make it fail"
FORMAT = "the format has no more room, or no valid input comes near"
OWN = "of what the server wrote itself, or an operator"

EXEMPT = {
    "authentication/digest_md5.py:MAX_RESPONSE_BYTES": FORMAT + " (RFC 2831)",
    "authentication/key_set.py:MAX_BYTES": OWN + ": the issuer's keys",
    "authentication/key_set.py:MAX_KEYS": OWN + ": the issuer's keys",
    "authentication/listener_tokens.py:LEAST_CHARACTERS": "a least, of the operator's own file",
    "authentication/negotiation.py:MAX_NAME_BYTES": FORMAT + " (RFC 4422: 20)",
    "authentication/negotiation.py:MAX_STEPS": FORMAT,
    "authorization/policy_service.py:MAX_ANSWER_BYTES": "what the operator's own policy service answers",
    "authorization/standard_rights.py:MAX_GROUPS": "what the operator's own directory and issuer say",
    "authentication/plain.py:MAX_CHARACTERS": FORMAT + ": no directory's names and passwords are as long",
    "cache/dump/file.py:MAX_TREE_BYTES": FORMAT + ": a file of the server's own",
    "cache/dump/values.py:MAX_DEPTH": FRAMES,
    "expressions/filter_parser.py:MAX_PARENTHESES": FRAMES + "; those of ORs in ORs need none",
    "expressions/hive_tree.py:MAX_DEPTH": FRAMES,
    "expressions/kryo.py:MAX_DEPTH": FORMAT + ": Hive's own stack holds some thousand functions",
    "expressions/kryo.py:_MAX_NUMBER_BYTES": FORMAT + " (38 digits)",
    "metadata/quartz_schedule.py:LONGEST_SCHEDULE": FORMAT + ": Hive's column has 256 characters",
    "metadata/statistics_values.py:_MAX_DECIMAL_BYTES": FORMAT + " (38 digits)",
    "metadata/statistics_values.py:_MAX_DECIMAL_SCALE": FORMAT + " (38)",
    "patterns/java_regex.py:MAX_DEPTH": FRAMES,
    "server/authorization/objects.py:FEW_CATALOGS": FORMAT + ": clients name one catalog",
    "server/authorization/objects.py:MAX_WITH_CATALOGS": FORMAT + ": clients name one catalog",
    "server/handlers/partition_specs.py:_MAX_SHARED_CHARACTERS": "as long as a request may be that shares nothing",
    "server/session.py:ALWAYS_KEPT_BYTES": "what is below it is let in, by server.sessions_budget_bytes",
    "server/transports/http_requests.py:MAX_HEADER_LINES": FORMAT + ": clients and proxies send some twenty lines",
    "server/transports/proxy_headers.py:_MAX_TEXT_BYTES": FORMAT + " (version 1 of the PROXY protocol)",
    "store/avro_schemas.py:_MAX_DEPTH": FRAMES,
    "store/avro_schemas.py:_MAX_PRECISION": FORMAT + " (Hive's decimals)",
    "store/engine/drivers/mysql_driver.py:LARGE_STATEMENT_BYTES": "from here on the database's own limit is asked for",
    "store/engine/drivers/mysql_rows.py:_HEADER": FORMAT,
    "store/engine/position_wire.py:_NULL": FORMAT,
    "store/properties/selection.py:_LARGEST_NUMBER_BITS": "numbers of properties; JEXL's have 64 bits",
    "store/properties/selection.py:_LONGEST_NUMBER": "numbers of properties; JEXL's have 64 bits",
    "store/properties/serialized_maps.py:_LONGEST_TEXT_BYTES": FORMAT + " (Java's writeUTF)",
    "store/warehouse/local_files.py:_LISTING_DEPTH": FORMAT + ": warehouse.listing_max_entries bounds the work",
    "store/warehouse/local_files.py:_PATH_MAX_BYTES": FORMAT + " (Linux)",
    "txn/id_lists.py:LONG_MAX": FORMAT,
    "txn/id_lists.py:_LONGEST_NUMBER": FORMAT + ": 64 bits have 19 digits",
    "wire/encodings.py:MAX_NAME_BYTES": FORMAT + ": the longest method has 46",
    "wire/messages.py:_FRAME_LENGTH_BYTES": FORMAT,
    "wire/replies.py:_MAX_FRAME_BYTES": FORMAT,
    "wire/streaming.py:_BYTES_PER_OBJECT": "a part of server.max_message_bytes: objects that its bytes may stand for",
    "wire/streaming.py:_FREE_OBJECTS": "free objects of a message are bounded by server.buffer_budget_bytes",
    "wire/streaming.py:_MAX_EMPTY_OBJECTS": FORMAT + ": objects without a byte",
}


def _numbers(tree: ast.Module) -> set[str]:
    """Constants of the module that are made of integers."""
    found = set()
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if not all(isinstance(one, ast.Name) and one.id.isupper() for one in targets):
            continue
        parts = [one for one in ast.walk(node.value) if isinstance(one, ast.expr)]
        if all(isinstance(one, ast.Constant | ast.BinOp | ast.UnaryOp) for one in parts) and any(
            isinstance(one, ast.Constant) and type(one.value) is int for one in parts
        ):
            found.update(one.id for one in targets if isinstance(one, ast.Name))
    return found


def _compared(test: ast.expr) -> set[str]:
    """Names on either side of a comparison by size."""
    return {
        name.id
        for one in ast.walk(test)
        if isinstance(one, ast.Compare) and any(isinstance(op, ast.Gt | ast.GtE | ast.Lt | ast.LtE) for op in one.ops)
        for name in ast.walk(one)
        if isinstance(name, ast.Name)
    }


def _refuses(body: list[ast.stmt]) -> bool:
    return any(
        isinstance(node, ast.Raise)
        or (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and "fail" in node.func.attr)
        for statement in body
        for node in ast.walk(statement)
    )


def refusing(path: Path) -> set[str]:
    """Constants that decide about a refusal, directly or as a local variable."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = _numbers(tree)
    if not constants:
        return set()
    found: set[str] = set()
    for function in (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)):
        stands_for = {name: {name} for name in constants}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                used = {one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)} & constants
                if used:
                    stands_for[node.targets[0].id] = used
        for node in ast.walk(function):
            if isinstance(node, ast.If) and (_refuses(node.body) or _refuses(node.orelse)):
                for name in _compared(node.test):
                    found |= stands_for.get(name, set())
    return found


def test_no_module_keeps_a_limit_to_itself() -> None:
    found = {
        f"{path.relative_to(PACKAGE).as_posix()}:{name}"
        for path in modules()
        if path.relative_to(PACKAGE).parts[0] in CLIENTS
        for name in refusing(path)
    }
    assert sorted(found - set(EXEMPT)) == [], "make it a setting (section limits), or say here why not"
    assert sorted(set(EXEMPT) - found) == [], "these are gone"


def test_a_limit_is_found(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "MAX = 3 * 1024\nMOST: int = 7\nOTHER = 5\n"
        "def read(text):\n    if len(text) > MAX:\n        raise ValueError\n"
        "def take(count):\n    most = MOST if count else 0\n    if count >= most:\n        self._fail(1)\n"
        "    return count > OTHER\n"
    )
    assert refusing(module) == {"MAX", "MOST"}
