"""Groups of the operating system, also if it does not answer."""

from __future__ import annotations

import pwd
import subprocess
import threading

import pytest

from hms_cache.authentication.system_groups import MAX_AT_ONCE, SystemGroups, groups_of


def test_groups_are_those_of_the_system() -> None:
    """`id` asks the name service, too."""
    system = SystemGroups()
    users = [entry.pw_name for entry in pwd.getpwall()][:30]
    for user in users:
        told = subprocess.run(["id", "-Gn", user], capture_output=True, text=True, check=True).stdout
        assert system.of(user) == frozenset(told.split()), user
    assert users and any(system.of(user) for user in users)


@pytest.mark.parametrize("user", ["no-such-user", "", "a\0b", "x" * 10_000, "\udc80", "root\n", "../root", "0"])
def test_a_user_whom_the_system_does_not_know_is_in_none(user: str) -> None:
    assert SystemGroups().of(user) == frozenset()


def test_groups_beside_the_first_count(monkeypatch: pytest.MonkeyPatch) -> None:
    import grp
    import os

    entry = pwd.getpwuid(os.getuid())
    known = [one.gr_gid for one in grp.getgrall()][:3]
    monkeypatch.setattr(os, "getgrouplist", lambda user, first: [first, *known, 4_000_000_000])
    names = {grp.getgrgid(number).gr_name for number in (entry.pw_gid, *known)}
    assert groups_of(entry.pw_name) == names, "a number without a name is left out"


def test_a_system_that_hangs_holds_no_caller_and_few_threads() -> None:
    gate, requested = threading.Event(), []

    def look(user: str) -> frozenset[str]:
        requested.append(user)
        gate.wait(30)
        return frozenset({"g"})

    system = SystemGroups(look, timeout_s=0.05)
    for _ in range(3 * MAX_AT_ONCE):
        with pytest.raises(TimeoutError):
            system.of("ann")
    assert len(requested) == MAX_AT_ONCE
    gate.set()
    assert SystemGroups(look, timeout_s=30).of("ann") == {"g"}
    for _ in range(MAX_AT_ONCE):  # its threads have ended
        while True:
            try:
                assert system.of("ann") == {"g"}
                break
            except TimeoutError:
                continue


def test_an_error_is_told() -> None:
    def look(user: str) -> frozenset[str]:
        raise OSError("no such service")

    for _ in range(2 * MAX_AT_ONCE):
        with pytest.raises(OSError, match="no such service"):
            SystemGroups(look).of("ann")


def test_threads_that_cannot_be_started_keep_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system was out of threads for a moment: users have their groups again afterwards."""
    system = SystemGroups(lambda user: frozenset({"g"}), timeout_s=30)

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        for _ in range(MAX_AT_ONCE):
            with pytest.raises(OSError, match="can't start new thread"):
                system.of("ann")
    assert system.of("ann") == {"g"}
