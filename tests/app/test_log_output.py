"""Log lines as text and as JSON."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from typing import Literal

import pytest

from hms_cache.app.log_output import MAX_TRACE_CHARACTERS, set_up_logging
from hms_cache.config import LogSettings


@pytest.fixture(autouse=True)
def loggers_as_before() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in (None, "hms_cache", "hms_cache.audit")]
    handlers, levels = list(loggers[0].handlers), [logger.level for logger in loggers]
    yield
    loggers[0].handlers[:] = handlers
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


def test_text_lines_have_time_level_and_place(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(LogSettings())
    logging.getLogger("hms_cache.server").info("listening on %d", 9083)
    logging.getLogger("hms_cache.server").debug("not wanted")
    line = capsys.readouterr().err
    assert line.endswith(" INFO hms_cache.server: listening on 9083\n")
    assert line.count("\n") == 1


def test_json_lines_are_one_object_each_also_with_a_trace(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(LogSettings(format="json", level="debug"))
    log = logging.getLogger("hms_cache.store")
    log.debug("two\nlines")
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("it failed")
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (first["level"], first["logger"], first["message"]) == ("debug", "hms_cache.store", "two\nlines")
    assert "ValueError: broken" in second["trace"]


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_trace_is_no_longer_than_what_it_tells(
    capsys: pytest.CaptureFixture[str], form: Literal["text", "json"]
) -> None:
    """A client may know how to make a call fail inside with a text of megabytes."""
    set_up_logging(LogSettings(format=form))
    try:
        raise ValueError("x" * 4_000_000 + " what went wrong")
    except ValueError:
        logging.getLogger("hms_cache.store").exception("it failed")
    logged = capsys.readouterr().err
    assert len(logged) < 2 * MAX_TRACE_CHARACTERS
    assert "Traceback" in logged and "characters left out" in logged and "what went wrong" in logged


def test_audit_lines_pass_at_any_level_and_libraries_only_when_they_warn(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(LogSettings(level="error"))
    logging.getLogger("hms_cache.audit").info("ugi=a\tip=b\tcmd=c\t")
    logging.getLogger("hms_cache.cache").warning("not wanted")
    logging.getLogger("sqlalchemy.engine").info("not wanted")
    assert "cmd=c" in (line := capsys.readouterr().err)
    assert "not wanted" not in line


def test_no_line_is_lost_while_a_reload_changes_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    """Closing the previous output may take seconds, since it writes what is waiting."""
    set_up_logging(LogSettings())

    class Slow(logging.Handler):
        def close(self) -> None:
            logging.getLogger("hms_cache.audit").info("ugi=a\tip=b\tcmd=meanwhile\t")
            super().close()

    logging.getLogger().addHandler(Slow())
    set_up_logging(LogSettings(format="json"))
    assert "cmd=meanwhile" in capsys.readouterr().err


def test_lines_of_an_event_loop_are_written_although_no_thread_can_be_started(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up_logging(LogSettings())
    log = logging.getLogger("hms_cache.server")

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def speak() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            log.info("first")
        log.info("second")

    asyncio.run(speak())
    logging.getLogger().handlers[0].close()
    assert [line.rpartition(": ")[2] for line in capsys.readouterr().err.splitlines()] == ["first", "second"]
