"""Plans executed by the command, on a real server: order, leases, limits, and what remains."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hms_cache.client import MetastoreClient
from hms_cache.jobs.schedule.lease import Lease, LeaseBusyError, is_running
from hms_cache.thrift_gen.hive_metastore.ttypes import ShowLocksRequest, UnlockRequest
from tests.conftest import ServerStarter
from tests.jobs.catalogs import Catalog
from tests.prepared.commands import run_command
from tests.servers import ServerProcess

ROOT = Path(__file__).parents[3]

#: A replacement for spark-submit: it records that it runs, and never ends.
SLEEPER = [
    sys.executable,
    "-c",
    "import os,sys,time; open(sys.argv[3] + '.pid', 'w').write(str(os.getpid())); time.sleep(600)",
]


class Runner:
    """The command with a plan, on a server with two tables."""

    def __init__(self, server: ServerProcess, directory: Path) -> None:
        self.server, self.directory = server, directory
        self.plan, self.summary, self.metrics = (directory / name for name in ("plan.toml", "s.json", "m.prom"))
        catalog = Catalog(server.uri)
        catalog.database("d")
        for name in ("t", "u"):
            catalog.table("d", name, keys=["p"])
        catalog.close()

    def command(self, plan: str, *arguments: str) -> list[str]:
        self.plan.write_text(f'metastore = "{self.server.uri}"\n{plan}')
        command = [sys.executable, "-m", "hms_cache.cli", "jobs", "run", "--plan", str(self.plan)]
        return [*command, "--summary", str(self.summary), "--metrics", str(self.metrics), *arguments]

    def run(self, plan: str, *arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
        """Exit status and steps by name."""
        _python, _module, _name, *words = self.command(plan, *arguments)
        done = run_command(words, ROOT, timeout_s=200)
        assert self.summary.exists(), done.stderr
        steps = json.loads(self.summary.read_text())["steps"]
        return done.returncode, {step["name"]: step for step in steps}

    def locks(self) -> list[tuple[str, str | None]]:
        with MetastoreClient(self.server.uri) as client:
            return [(lock.dbname, lock.tablename) for lock in client.call("show_locks", ShowLocksRequest()).locks]


@pytest.fixture
def runner(start_server: ServerStarter, tmp_path: Path) -> Runner:
    # A lease is renewed every second.
    return Runner(
        start_server("sqlite", **{"transactions.timeout_s": 6, "transactions.housekeeping_interval_s": 1}), tmp_path
    )


def repair(name: str, table: str, more: str = "", **options: str) -> str:
    given = "".join(f", {key} = {json.dumps(value)}" for key, value in options.items())
    return f'[[job]]\nname = "{name}"\njob = "repair"\n{more}\noptions = {{tables = ["{table}"]{given}}}\n'


def sleeping(name: str, table: str, more: str = "") -> str:
    return repair(name, table, f"command = {json.dumps(SLEEPER)}\n{more}")


@pytest.mark.soak
def test_steps_in_order_with_all_ways_to_end(runner: Runner) -> None:
    with ExitStack() as held:
        held.callback(Lease(runner.server.uri, [("hive.d", "u")], agent_info="somebody").release)
        plan = (
            repair("first", "d.t")
            + sleeping("slow", "d.t", 'time_limit = "1 s"')
            + repair("busy", "d.u")
            + repair("after slow", "d.t", 'needs = ["first", "slow"]')
            + repair("fails", "d.t", database="mysql://nobody@127.0.0.1:1/none")
            + repair("last", "d.t", 'needs = ["first"]')
        )
        status, steps = runner.run(plan)
        assert runner.locks() == [("hive.d (jobs)", "u")]
    states = {name: step["state"] for name, step in steps.items()}
    assert states == {
        "first": "done",
        "slow": "timed out",
        "busy": "busy",
        "after slow": "skipped",
        "fails": "failed",
        "last": "done",
    }
    assert status == 1
    assert steps["first"]["summary"]["tables"] == 1
    assert "d.u" in steps["busy"]["reason"]
    assert "127.0.0.1" in steps["fails"]["reason"]
    assert runner.locks() == []
    lines = runner.metrics.read_text().splitlines()
    assert 'hms_cache_job_state{job="repair",plan="plan",state="timed out",step="slow"} 1.0' in lines
    assert 'hms_cache_job_count{job="repair",plan="plan",step="first",what="tables"} 1.0' in lines
    successes = [line for line in lines if line.startswith("hms_cache_job_last_success")]
    assert {line.split('step="')[1].split('"')[0] for line in successes} == {"first", "last"}

    # A run in which a step fails keeps the time of its last success.
    assert runner.run(sleeping("first", "d.t", 'time_limit = "1 s"'))[0] == 1
    assert {line for line in successes if 'step="first"' in line} <= set(runner.metrics.read_text().splitlines())
    assert runner.run(repair("only", "d.t") + sleeping("never", "d.t"), "--only", "only", "--dry-run")[0] == 0


def test_a_step_whose_process_is_killed_says_so(runner: Runner) -> None:
    """By the system when memory is short: it cannot report the reason itself."""
    killed = [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    status, steps = runner.run(repair("killed", "d.t", f"command = {json.dumps(killed)}"))
    assert (status, steps["killed"]["state"]) == (1, "failed")
    assert steps["killed"]["reason"].endswith("its process was ended by SIGKILL")


def test_a_lease_is_one_at_a_time(runner: Runner) -> None:
    """By table, by database, by output; it is free again when it is released, or lost."""
    uri = runner.server.uri
    first = Lease(uri, [("hive.d", "t"), ("output /x", None)], agent_info="first")
    for targets in ([("hive.d", "t")], [("hive.d", None)], [("output /x", None), ("hive.e", "t")]):
        with pytest.raises(LeaseBusyError, match="another job"):
            Lease(uri, targets, agent_info="second")
    Lease(uri, [("hive.d", "u"), ("hive.other", None), ("output /y", None)], agent_info="third").release()
    waiting: list[Lease] = []
    waits = threading.Thread(
        target=lambda: waiting.append(Lease(uri, [("hive.d", None)], agent_info="fourth", wait_s=60))
    )
    waits.start()
    first.release()
    waits.join(60)
    [fourth] = waiting
    assert runner.locks() == [("hive.d (jobs)", None)]
    with MetastoreClient(uri) as client:
        [lock] = client.call("show_locks", ShowLocksRequest()).locks
        assert lock.agentInfo == "fourth"
        client.call("unlock", UnlockRequest(lockid=lock.lockid))
    assert fourth.lost.wait(60)
    fourth.release()
    long = Lease(uri, [("hive." + "d" * 128, "t" * 128)], agent_info="long")
    with pytest.raises(LeaseBusyError):
        Lease(uri, [("hive." + "d" * 128, "t" * 128)], agent_info="long, too")
    long.release()


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_plan_that_is_ended_leaves_nothing(runner: Runner, number: signal.Signals) -> None:
    """After SIGTERM, the step is ended and the lease released; after SIGKILL, the step ends by itself, and the lease
    expires."""
    plan = sleeping("slow", "d.t") if number is signal.SIGTERM else repair("slow", "d.t", f"command = {watched()}")
    process = subprocess.Popen(runner.command(plan), cwd=ROOT, env=os.environ | {"TMPDIR": str(runner.directory)})
    pid = _waited_for(lambda: next(iter(runner.directory.glob("hms-cache-job-*/*.pid")), None))
    child = int(_waited_for(lambda: pid.read_text() or None))
    assert runner.locks() == [("hive.d (jobs)", "t")]
    process.send_signal(number)
    process.wait(60)
    _waited_for(lambda: True if not is_running(child) else None)
    _waited_for(lambda: True if not runner.locks() else None)


def watched() -> str:
    """The step's own process, with a job that does not end."""
    program = (
        "import os, sys, time; from hms_cache.jobs.schedule import step; from hms_cache.jobs.frame.job import Job; "
        "open(sys.argv[3] + '.pid', 'w').write(str(os.getpid())); Job.run = lambda *a, **k: time.sleep(600); "
        "from pathlib import Path; step.run_step(Path(sys.argv[3]))"
    )
    return json.dumps([sys.executable, "-c", program])


def _waited_for(found: Callable[[], Any]) -> Any:
    """Returns the result of `found` once it is not None."""
    pause = threading.Event()
    for _ in range(600):
        answer = found()
        if answer is not None:
            return answer
        pause.wait(0.1)
    raise AssertionError("it never came")


def test_a_summary_that_cannot_be_written_takes_nothing_else_along(tmp_path: Path) -> None:
    """A missing directory is reported before any job runs; otherwise, everything that can be written is."""
    plan, metrics = tmp_path / "plan.toml", tmp_path / "m.prom"
    plan.write_text('metastore = "thrift://127.0.0.1:1"\n[[job]]\njob = "repair"\n')
    words = ["jobs", "run", "--plan", str(plan), "--metrics", str(metrics), "--json", "--summary"]
    absent = run_command([*words, str(tmp_path / "absent" / "s.json")], ROOT)
    assert absent.returncode == 2
    assert "absent is not a directory" in absent.stderr and not metrics.exists()
    taken = run_command([*words, str(tmp_path)], ROOT)
    assert taken.returncode == 1
    assert f"{tmp_path} cannot be written: Is a directory" in taken.stderr
    assert json.loads(taken.stdout)["steps"][0]["state"] == "failed"
    assert 'state="failed"' in metrics.read_text()
