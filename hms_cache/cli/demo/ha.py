"""``hms-cache demo ha``: PySpark is configured with two servers, and continues to work while each is killed and
restarted."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hms_cache.cli.demo.pair import kill_each_in_turn, running_pair
from hms_cache.cli.demo.spark_process import log_tail, start_spark
from hms_cache.errors import HmsCacheError

#: Time limit of a round of Spark. Spark starts in its first round, and looks for the other server after a kill.
ROUND_LIMIT_S = 300.0
#: Number of rounds that must be finished to prove progress; the first of them may have begun before.
ROUNDS_SEEN = 3


def run_ha(scratch: Path, database: str, console: Any) -> None:
    """Runs the demo. Raises `HmsCacheError` if Spark fails or makes no progress."""
    warehouse = scratch / "warehouse"
    with running_pair(scratch, database, warehouse) as pair:
        for server in pair:
            console.print(f"server up at [bold]{server.uri}[/bold]")
        uris = ",".join(server.uri for server in pair)
        with start_spark(scratch, "pair_script", uris, str(warehouse)) as spark:
            rounds = _Rounds(spark, scratch)
            try:
                kill_each_in_turn(pair, rounds.wait_for_more, lambda text: console.print(f"[yellow]{text}[/yellow]"))
                totals = rounds.end()
            except BaseException:
                spark.kill()
                raise
        console.print(f"Spark's slowest round took {rounds.slowest_s:.1f} s")
    if not totals["rounds"] == totals["rows"] == totals["partitions"]:
        raise HmsCacheError(f"Spark wrote {totals['rounds']} partitions, but the catalog has others: {totals}")
    console.print(f"[green]done[/green]: {totals['rounds']} rounds, all found at the end; everything stopped")


class _Rounds:
    """Follows Spark's output."""

    def __init__(self, spark: subprocess.Popen[str], scratch: Path) -> None:
        self._spark = spark
        self._scratch = scratch
        self._changed = threading.Condition()
        self._count = 0
        self._totals: Mapping[str, int] | None = None
        self._has_ended = False
        self.slowest_s = 0.0
        threading.Thread(target=self._read, name="spark-output", daemon=True).start()

    def _read(self) -> None:
        assert self._spark.stdout is not None
        for line in self._spark.stdout:
            if line.startswith("{"):
                values = json.loads(line)
                with self._changed:
                    if "rounds" in values:
                        self._totals = values
                    else:
                        self._count += 1
                        self.slowest_s = max(self.slowest_s, values["seconds"])
                    self._changed.notify_all()
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def wait_for_more(self) -> None:
        """Waits until `ROUNDS_SEEN` more rounds are finished."""
        with self._changed:
            expected = self._count + ROUNDS_SEEN
            self._changed.wait_for(lambda: self._has_ended or self._count >= expected, ROUND_LIMIT_S * ROUNDS_SEEN)
            if self._count < expected:
                raise HmsCacheError(f"Spark makes no progress:\n{log_tail(self._scratch)}")

    def end(self) -> Mapping[str, int]:
        """Lets Spark finish, and returns its final counts."""
        assert self._spark.stdin is not None
        self._spark.stdin.close()
        with self._changed:
            self._changed.wait_for(lambda: self._has_ended, ROUND_LIMIT_S)
            if self._totals is None:
                raise HmsCacheError(f"Spark did not finish:\n{log_tail(self._scratch)}")
            return self._totals
