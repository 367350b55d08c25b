"""Replies that are built on the event loop are short, however long the request: all others wait meanwhile."""

from __future__ import annotations

import random
from contextlib import suppress

from thrift.Thrift import TException

from hms_cache.server.calls import Kind
from hms_cache.server.handlers.table import all_handlers
from hms_cache.wire import METHODS, encode_struct
from tests.server.conftest import Link, Serve
from tests.server.test_long_texts import LEFT_OUT, Path, replaced, text_paths
from tests.server.test_request_fields import in_place
from tests.wire.strategies import filled

TEXT_CHARACTERS = 1 << 20
LONGEST_ANSWER_BYTES = 64 * 1024

ON_THE_LOOP = sorted(name for name, one in all_handlers().items() if one.kind is Kind.LOCAL and name not in LEFT_OUT)


def answer_bytes(link: Link, method: str, path: Path) -> int:
    """Size of the reply, or of its exception's text, to a request with a long text at the path. Raises OSError or
    EOFError if the conversation ends instead."""
    spec = METHODS[method]
    arguments = replaced(in_place(filled(spec.args_class, random.Random(7))), path, "x" * TEXT_CHARACTERS)
    if method == "get_config_value" and path != ("name",):
        arguments.name = "hive.nobody.knows.this"
    given = {field[2]: getattr(arguments, field[2]) for field in filter(None, arguments.thrift_spec)}
    try:
        return len(encode_struct(spec.result(link.call(method, **given))))
    except TException as error:
        return len(str(error))


def test_no_method_tells_a_long_text_again(serve: Serve) -> None:
    server = serve()
    for method in ON_THE_LOOP:
        for path in text_paths(METHODS[method].args_class, 4):
            link = server.link()
            with suppress(OSError, EOFError):
                assert answer_bytes(link, method, path) <= LONGEST_ANSWER_BYTES, (method, path)
            link.sock.close()


def test_values_of_a_configuration_are_answered_with_the_default_that_was_given(serve: Serve) -> None:
    link = serve().link()
    for default in ("", "x" * 100_000):
        assert link.call("get_config_value", name="hive.nobody.knows.this", defaultValue=default) == default
