"""A reload never ends a server, whatever is wrong with what is loaded."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from hms_cache.app.process import _reload
from hms_cache.config import Configuration, load
from hms_cache.errors import ConfigurationError, StartupError


class Service:
    """Takes nothing."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.reloads = 0

    def reload(self, _: Configuration) -> tuple[list[str], list[str]]:
        self.reloads += 1
        if self.error is not None:
            raise self.error
        return [], []


ERRORS: list[Exception] = [ConfigurationError("a"), StartupError("a"), ValueError("a"), LookupError("a"), OSError("a")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda one: type(one).__name__)
def test_what_cannot_be_loaded_changes_nothing(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> Configuration:
        raise error

    service: Any = Service()
    with caplog.at_level(logging.ERROR, "hms_cache"):
        _reload(service, fail, None)
    assert service.reloads == 0
    assert "not reloaded" in caplog.text


@pytest.mark.parametrize("error", ERRORS, ids=lambda one: type(one).__name__)
def test_what_cannot_be_taken_is_told(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    service: Any = Service(error)
    with caplog.at_level(logging.ERROR, "hms_cache"):
        _reload(service, lambda: load(environment={}), None)
    assert service.reloads == 1
    assert "not reloaded" in caplog.text
