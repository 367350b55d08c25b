"""A reload never ends a server, whatever is wrong with what is loaded."""

from __future__ import annotations

import logging
from typing import Any, cast

import pytest

from hms_cache.app.process import _reload
from hms_cache.config import Configuration, load
from hms_cache.errors import ConfigurationError, StartupError


class Service:
    """Accepts nothing."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.reloads = 0

    def reload(self, _: Configuration) -> tuple[list[str], list[str]]:
        self.reloads += 1
        if self.error is not None:
            raise self.error
        return [], []


class CombinedPositions:
    """What the parent of the process is notified of, and whether the log contained it by then."""

    def __init__(self, log: pytest.LogCaptureFixture) -> None:
        self.log = log
        self.received: list[tuple[bool, bool]] = []

    def __call__(self, is_taken: bool) -> None:
        self.received.append((is_taken, "reloaded" in self.log.text))


ERRORS: list[Exception] = [ConfigurationError("a"), StartupError("a"), ValueError("a"), LookupError("a"), OSError("a")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda one: type(one).__name__)
def test_what_cannot_be_loaded_changes_nothing(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> Configuration:
        raise error

    service: Any = Service()
    told = CombinedPositions(caplog)
    with caplog.at_level(logging.ERROR, "hms_cache"):
        _reload(service, fail, None, told)
    assert service.reloads == 0 and told.received == [(False, False)]
    assert "not reloaded" in caplog.text


@pytest.mark.parametrize("error", ERRORS, ids=lambda one: type(one).__name__)
def test_what_cannot_be_taken_is_told(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    service: Any = Service(error)
    told = CombinedPositions(caplog)
    with caplog.at_level(logging.ERROR, "hms_cache"):
        _reload(service, lambda: load(environment={}), None, told)
    assert service.reloads == 1 and told.received == [(False, False)]
    assert "not reloaded" in caplog.text


def test_the_parent_hears_of_it_before_anybody_else(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who reads in the log that it was accepted may end the process at once: its successor starts with it
    anyway."""
    monkeypatch.setattr("hms_cache.app.process.set_up_logging", lambda _: None)
    told = CombinedPositions(caplog)
    with caplog.at_level(logging.INFO, "hms_cache"):
        _reload(cast(Any, Service()), lambda: load(environment={}), None, told)
    assert told.received == [(True, False)]
    assert "reloaded: nothing that a running server can take has changed" in caplog.text
