"""Clients get the open files that the system allows beyond those that the server itself needs."""

from __future__ import annotations

import logging
import resource
from collections.abc import Iterator

import pytest

from hms_cache.app.system.open_files import FILES_FOR_OTHERS, connections_allowed, files_to_spare


@pytest.fixture
def hard_limit() -> Iterator[int]:
    """The process's own limits are restored afterwards; the soft limit is low at the start."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, hard), hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_limit_is_raised_to_what_is_needed(hard_limit: int) -> None:
    wanted = 1024
    if 0 <= hard_limit < wanted + FILES_FOR_OTHERS:
        pytest.skip("the system allows too few files")
    assert connections_allowed(wanted) == wanted
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= wanted + FILES_FOR_OTHERS


def test_more_connections_than_files_are_not_promised(hard_limit: int, caplog: pytest.LogCaptureFixture) -> None:
    if hard_limit == resource.RLIM_INFINITY:
        pytest.skip("the system has no limit")
    with caplog.at_level(logging.WARNING):
        assert connections_allowed(hard_limit) == hard_limit - FILES_FOR_OTHERS
    assert "server.max_connections" in caplog.text


def test_files_to_spare_are_those_beyond_the_connections(hard_limit: int) -> None:
    if 0 <= hard_limit < 3_000:
        pytest.skip("the system allows too few files")
    assert files_to_spare(1_000, 1_024) == 1_000
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 2_024 + FILES_FOR_OTHERS
    if hard_limit != resource.RLIM_INFINITY:
        assert files_to_spare(1_000, hard_limit - FILES_FOR_OTHERS - 10) == 10
        assert files_to_spare(1_000, hard_limit) == 0
