"""No text of a client can forge a line of a log."""

from __future__ import annotations

import ast
import io
import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hmsclient.genthrift.hive_metastore.ttypes import Database
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_cache.app.log_output import JsonFormatter, TextFormatter
from hms_cache.server.audit import LONGEST_FIELD_CHARACTERS, MAX_OBJECTS, Audited, AuditLog, audit_log, struct_text
from hms_cache.server.handlers.table import all_handlers
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.admin.running import Running

FORGED = (
    "ann\tip=10.0.0.1\tcmd=drop_table : db=sales tbl=orders\t\n2026-01-02 03:04:05,678 INFO hms_cache.audit: ugi=bob"
)

#: What a client may put into a name: all characters of Thrift's UTF-8, mainly those that break lines.
TEXTS = st.one_of(
    st.text(max_size=40),
    st.text(st.sampled_from("\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029\u202e\\= a\x00\ud800"), max_size=40),
)


class Log:
    """The audit logger's own output, as the server writes it."""

    def __init__(self, formatter: logging.Formatter) -> None:
        self._stream = io.StringIO()
        self.handler = logging.StreamHandler(self._stream)
        self.handler.setFormatter(formatter)

    def lines(self) -> list[str]:
        return self._stream.getvalue().splitlines()


@pytest.fixture
def quiet() -> Iterator[None]:
    propagate, level = audit_log.propagate, audit_log.level
    audit_log.propagate = False
    audit_log.setLevel(logging.INFO)
    yield
    audit_log.propagate = propagate
    audit_log.setLevel(level)


def written(audit: AuditLog, calls: list[tuple[str, str]], formatter: logging.Formatter) -> list[str]:
    log = Log(formatter)
    audit_log.addHandler(log.handler)
    try:
        audit.start()
        for user, command in calls:
            audit.record(user, "10.1.2.3", command)
        audit.stop(timeout_s=30)
    finally:
        audit_log.removeHandler(log.handler)
    return log.lines()


def unescaped(field: str) -> str:
    text = ast.literal_eval('"' + field.replace('"', '\\"') + '"')
    assert isinstance(text, str)
    return text


@pytest.mark.usefixtures("quiet")
@settings(max_examples=60)
@given(user=TEXTS, command=TEXTS)
def test_a_call_is_one_line_of_three_fields(user: str, command: str) -> None:
    (line,) = written(AuditLog("all"), [(user, command)], TextFormatter())
    fields = line.partition(" hms_cache.audit: ")[2].split("\t")
    assert [field.partition("=")[0] for field in fields] == ["ugi", "ip", "cmd", ""]
    told = [unescaped(field.partition("=")[2]) for field in fields[:3]]
    assert told == [user, "10.1.2.3", command]


@pytest.mark.usefixtures("quiet")
@settings(max_examples=60)
@given(user=TEXTS, command=TEXTS)
def test_json_says_the_same(user: str, command: str) -> None:
    (line,) = written(AuditLog("all", "json"), [(user, command)], TextFormatter())
    found = json.loads(line.partition(" hms_cache.audit: ")[2])
    assert found == {"ugi": user, "ip": "10.1.2.3", "cmd": command}


def test_a_line_tells_of_a_table_what_was_sent_but_no_secret_and_nothing_long() -> None:
    usual = ttypes.Table(
        "t", "d", sd=ttypes.StorageDescriptor(cols=[ttypes.FieldSchema("a", "int", "it's")]), parameters={"k": "v\n"}
    )
    assert struct_text(usual) == repr(usual)
    handlers = all_handlers()
    parameters = {"hive.sql.dbcp.password": "hidden", "hive.sql.jdbc.url": "jdbc:postgresql://ann:hidden@host/db"}
    secret = ttypes.Table(
        "t", "d", sd=ttypes.StorageDescriptor(location="s3://key:hidden@bucket/t"), parameters=parameters
    )
    many = {f"k{number}": "v" * 100_000 for number in range(300)}
    for method, arguments in (
        ("create_table", methods.create_table_args),
        ("create_table_with_constraints", methods.create_table_with_constraints_args),
        ("create_table_req", lambda table: methods.create_table_req_args(ttypes.CreateTableRequest(table))),
    ):
        told = handlers[method].audit(arguments(secret))
        assert told.startswith("create_table: Table(tableName='t'") and "hidden" not in told
        assert "'hive.sql.dbcp.password': '***'" in told and "s3://***@bucket/t" in told
        assert len(handlers[method].audit(arguments(ttypes.Table("t", parameters=many)))) < 300_000
    database = ttypes.Database("d", locationUri="s3://key:hidden@bucket/d", parameters=parameters)
    assert "hidden" not in handlers["create_database"].audit(methods.create_database_args(database))


@given(text=TEXTS)
def test_no_message_begins_a_line_and_no_trace_passes_for_one(text: str) -> None:
    record = logging.LogRecord("hms_cache.server", logging.WARNING, "", 0, "no table %s", (text,), None)
    assert len(TextFormatter().format(record).splitlines()) == 1
    assert json.loads(JsonFormatter().format(record))["message"] == f"no table {text}"
    try:
        raise ValueError(text)
    except ValueError as error:
        failed = logging.LogRecord(
            "hms_cache.server", logging.ERROR, "", 0, "failed", (), (ValueError, error, error.__traceback__)
        )
    lines = TextFormatter().format(failed).splitlines()
    assert all(line.startswith("    ") or not line for line in lines[1:])


@pytest.mark.parametrize("form", ["hive", "json"])
def test_a_user_with_tabs_and_newlines_forges_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, form: str
) -> None:
    server = Running(tmp_path, server__audit="all", server__audit_format=form)
    with caplog.at_level(logging.INFO, "hms_cache.audit"):
        server.client.set_ugi(FORGED, [])
        server.client.create_database(Database(name="d"))
        server.close()
    messages = [
        r.getMessage() for r in caplog.records if r.name == "hms_cache.audit" and "create_database" in r.message
    ]
    assert len(messages) == 1
    if form == "json":
        assert json.loads(messages[0])["ugi"] == FORGED
    else:
        assert messages[0].count("\t") == 3 and "\n" not in messages[0]
        assert unescaped(messages[0].split("\t")[0].removeprefix("ugi=")) == FORGED


@pytest.mark.usefixtures("quiet")
def test_lines_that_wait_are_bounded_in_bytes_and_lost_ones_counted() -> None:
    """A log that accepts nothing for a while, and user names as long as a message may be."""
    go_on = threading.Event()
    log = Log(TextFormatter())
    log.handler.addFilter(lambda record: go_on.wait(30) or True)
    audit_log.addHandler(log.handler)
    limit = 256 * 1024
    audit = AuditLog("all", queue_bytes=limit)
    try:
        audit.start()
        for number in range(1_000):
            audit.record("u" * 1_000_000, "10.1.2.3", f"call {number}")
            assert audit.queued_bytes <= limit
        kept = 1_000 - audit.lost
        assert 0 < kept < 100
        go_on.set()
        audit.stop(timeout_s=30)
    finally:
        go_on.set()
        audit_log.removeHandler(log.handler)
    lines = log.lines()
    assert len(lines) == kept
    assert audit.queued_bytes == 0
    assert max(map(len, lines)) < LONGEST_FIELD_CHARACTERS + 200


@pytest.mark.usefixtures("quiet")
@settings(max_examples=40)
@given(principal=TEXTS, objects=st.lists(TEXTS, max_size=MAX_OBJECTS + 3))
def test_json_of_principals_and_objects_is_one_line_and_bounded(principal: str, objects: list[str]) -> None:
    log = Log(TextFormatter())
    audit_log.addHandler(log.handler)
    audit = AuditLog("all", "json")
    try:
        audit.start()
        audit.record("u", "10.1.2.3", "x", Audited("get_table", "denied", principal, "GSSAPI", tuple(objects)))
        audit.stop(timeout_s=30)
    finally:
        audit_log.removeHandler(log.handler)
    (line,) = log.lines()
    found = json.loads(line.partition(" hms_cache.audit: ")[2])
    assert (found["ugi"], found["principal"], found["allowed"]) == ("u", principal, False)
    assert found["objects"] == objects[:MAX_OBJECTS]
    assert found.get("objects_omitted", 0) == max(0, len(objects) - MAX_OBJECTS)
