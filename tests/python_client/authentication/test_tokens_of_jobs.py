"""The delegation tokens of a job's tasks: valid while it runs, and cancelled when it has ended."""

from __future__ import annotations

import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hms_cache.authentication.delegation.token_format import Token
from hms_cache.client import (
    AuthenticationRefusedError,
    MetastoreClient,
    Metastores,
    MetastoreUnavailableError,
    cancelling_tokens,
    delegation,
    for_tasks,
)
from hms_cache.errors import HmsCacheError
from hms_cache.jobs.frame import Job, JobResult, JobRun, Option
from tests.python_client.authentication.site import Site
from tests.python_client.authentication.test_mechanisms import given, refusal

pytestmark = pytest.mark.timeout(240)

MAX_WAIT_S = 60.0


@pytest.fixture(autouse=True)
def _no_tokens_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(delegation, "_tokens", {})
    yield
    assert (delegation._holders, delegation._to_cancel) == (0, [])


@pytest.fixture
def metastores(site: Site) -> Metastores:
    return Metastores.of_texts(site.uri("kerberos"), site.kerberos, {})


def is_good(access: Metastores) -> bool:
    with MetastoreClient(access) as client:
        try:
            return "default" in client.call("get_all_databases")
        except AuthenticationRefusedError:
            return False


seen: list[Metastores] = []
"""What the tasks of `obtaining` got."""


def obtaining(run: JobRun) -> JobResult:
    """A job's main function."""
    access = for_tasks(run.metastores)
    assert access == for_tasks(run.metastores) and is_good(access)
    seen.append(access)
    if run.options["fails"]:
        raise HmsCacheError("as it was told")
    return JobResult({})


JOB = Job(
    "obtaining",
    "",
    f"{__name__}:obtaining",
    (Option("metastore", ""), Option("auth", ""), Option("fails", "", kind=bool)),
    needs_spark=False,
)


@pytest.mark.parametrize("fails", [False, True])
def test_a_job_leaves_no_token(site: Site, fails: bool) -> None:
    options = {"metastore": site.uri("kerberos"), "auth": site.kerberos, "fails": fails}
    for _ in range(2):
        if fails:
            with pytest.raises(HmsCacheError, match="as it was told"):
                JOB.run(None, options)
        else:
            JOB.run(None, options)
        assert not is_good(seen.pop())


def test_the_signal_is_handled_as_before_afterwards(metastores: Metastores) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with cancelling_tokens():
        with cancelling_tokens():
            assert is_good(for_tasks(metastores))
        assert (signal.getsignal(signal.SIGTERM) is before) == (before is not signal.SIG_DFL)
    assert signal.getsignal(signal.SIGTERM) is before


def test_jobs_at_the_same_time_share_a_token_until_the_last_has_ended(metastores: Metastores) -> None:
    with cancelling_tokens():
        with cancelling_tokens():
            access = for_tasks(metastores)
        assert for_tasks(metastores) == access and is_good(access)
    assert not is_good(access)


def test_a_token_that_no_job_has_obtained_stays(metastores: Metastores) -> None:
    before = for_tasks(metastores)
    with cancelling_tokens():
        assert for_tasks(metastores) == before
    assert for_tasks(metastores) == before and is_good(before)


def test_all_that_a_long_job_has_obtained_are_cancelled(
    metastores: Metastores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delegation, "_USED_S", 0.0)
    with cancelling_tokens():
        found = [for_tasks(metastores) for _ in range(3)]
        assert len({given(access) for access in found}) == 3 and all(map(is_good, found))
        # Its ticket has expired in the meantime.
        monkeypatch.setenv("KRB5_CONFIG", "/nonexistent")
    assert not any(map(is_good, found))


def test_a_process_that_was_handed_a_token_leaves_it_to_who_has(metastores: Metastores) -> None:
    with cancelling_tokens():
        handed = delegation.tokens_to_transfer([metastores, Metastores("thrift://elsewhere:1")])
        assert [*handed] == [metastores] and repr(handed[metastores].token.password) not in repr(handed)
        access = for_tasks(metastores)
        delegation._tokens.clear()  # in the other process
        delegation.use_transferred(handed)
        assert for_tasks(metastores) == access
    assert not is_good(access)


def test_a_handed_token_is_not_given_to_new_tasks_for_ever(
    metastores: Metastores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delegation, "_USED_S", 0.0)
    with cancelling_tokens():
        handed = delegation.tokens_to_transfer([metastores])
        delegation.use_transferred(handed)
        assert given(for_tasks(metastores)) != handed[metastores].token


def test_a_metastore_that_is_gone_fails_no_job(site: Site, tmp_path: Path) -> None:
    service = site.kerberos_server(tmp_path)
    uri = service.start().replace("127.0.0.1", "localhost")
    with cancelling_tokens():
        access = for_tasks(Metastores.of_texts(uri, site.kerberos, {}))
        service.stop()
    refusal(MetastoreClient(access), MetastoreUnavailableError, "localhost")


def test_a_metastore_that_does_not_answer_delays_a_job_for_a_limited_time(
    metastores: Metastores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This test ends: nobody ever answers."""
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        monkeypatch.setattr(delegation, "_CANCEL_S", 0.1)
        uri = f"thrift://localhost:{silent.getsockname()[1]}"
        with cancelling_tokens():
            token: Token = given(for_tasks(metastores))
            delegation._to_cancel.append((Metastores(uri, metastores.authentication), token))


PROGRAM = """
import pickle, sys
from contextlib import ExitStack
from hms_cache.client import Metastores, cancelling_tokens, for_tasks
from hms_cache.client.delegation import hold_tokens, release_tokens_on_sigterm

with ExitStack() as stack:
    if sys.argv[1] == "stream":
        hold_tokens()
        release_tokens_on_sigterm()
    else:
        for _ in range(2):
            stack.enter_context(cancelling_tokens())
    access = for_tasks(Metastores.of_texts(sys.argv[2], sys.argv[3], {}))
    print(pickle.dumps(access).hex(), flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("what", ["stream", "jobs"])
def test_a_process_that_is_told_to_end_cancels_its_tokens(site: Site, what: str) -> None:
    """Spark ends the process that plans a stream in this way, and a plan of jobs ends a step that takes too long."""
    command = [sys.executable, "-c", PROGRAM, what, site.uri("kerberos"), site.kerberos]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        access = pickle.loads(bytes.fromhex(process.stdout.readline()))
        assert is_good(access)
        process.terminate()
        assert process.wait(MAX_WAIT_S) == 128 + signal.SIGTERM
    assert not is_good(access)
