"""The statements for Hive 4.0.1's engine: two sessions in turn, other statements, replication, compaction."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.clients.hive import engine
from tests.clients.hive.test_hive_engine import STATEMENTS
from tests.clients.hive.two_sessions import FIRST, statements

_REPLICATION = (
    "set hive.repl.rootdir=file:{directory}/repl",
    "set hive.repl.cm.enabled=true",
    "set hive.repl.cmrootdir=file:{directory}/cm",
    "set hive.repl.replica.functions.root.dir=file:{directory}/functions",
    "create database src with dbproperties('repl.source.for'='1')",
    "create table src.t (k int, v string) stored as orc tblproperties('transactional'='true')",
    "insert into src.t values (1,'a'),(2,'b')",
    "create table src.p (k int) partitioned by (d string) stored as orc tblproperties('transactional'='true')",
    "insert into src.p values (1,'x'),(2,'y')",
    "repl dump src",
    "repl load src into dst",
    "repl status dst",
    "select * from dst.t order by k",
    "insert into src.t values (3,'c')",
    "update src.t set v='u' where k=1",
    "alter table src.p drop partition (d='y')",
    "repl dump src",
    "repl load src into dst",
    "repl status dst",
    "select * from dst.t order by k",
    "drop database dst cascade",
    "alter database src set dbproperties('repl.source.for'='')",
    "drop database src cascade",
)
_COMPACTED = (
    "create database compacted",
    "create table compacted.t (k int) stored as orc tblproperties('transactional'='true')",
    *(f"insert into compacted.t values ({number})" for number in range(3)),
    "delete from compacted.t where k=1",
    "create table compacted.p (k int) partitioned by (d string) stored as orc tblproperties('transactional'='true')",
    *(f"insert into compacted.p values ({number}, 'x')" for number in range(2)),
)
_AFTER_COMPACTION = (
    "show compactions",
    "select * from compacted.t order by k",
    "select count(*) from compacted.p",
    "update compacted.t set k=5 where k=2",
    "drop database compacted cascade",
)
_WORKS = Path(__file__).parent / "java" / "CompactOnce.java"


def run(uri: str, root: Path, directory: Path) -> None:
    """All of it, on one metastore."""
    with_two_sessions(uri, root, directory, [*statements(), *_of_first(_lines(STATEMENTS))])


def run_replication(uri: str, root: Path, directory: Path) -> None:
    """Dumps and loads a database, first as a whole and then what was changed."""
    with_two_sessions(uri, root, directory, _of_first(_REPLICATION))


def run_compaction(uri: str, root: Path, directory: Path, database_url: str) -> None:
    """Compactions done by Hive's own worker. It and `ALTER TABLE … COMPACT` need the metastore's database beside it."""
    with_two_sessions(uri, root, directory, _of_first(_COMPACTED), database_url)
    done = subprocess.run(
        [*engine.java(directory / "session1" / "conf", str(_WORKS), database_url), "t::MAJOR", "p:d=x:MINOR"],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=engine.LIMIT_S,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"Hive's worker failed: {done.stderr[-4000:]}")
    with_two_sessions(uri, root, directory / "after", _of_first(_AFTER_COMPACTION), database_url)


def with_two_sessions(
    uri: str, root: Path, directory: Path, told: Iterable[tuple[int, str]], database_url: str | None = None
) -> None:
    """Runs the statements of (session, statement); the second session starts with its first statement."""
    sessions: dict[int, engine.Session] = {}
    try:
        for session, statement in told:
            if session not in sessions:
                place = directory / f"session{session + 1}"
                sessions[session] = engine.Session(uri, place, root, database_url)
            for line in [statement, *sessions[session].execute(statement)]:
                print(line[:160], flush=True)
    finally:
        for each in sessions.values():
            each.close()


def _of_first(lines: Iterable[str]) -> list[tuple[int, str]]:
    return [(FIRST, line) for line in lines]


def _lines(script: str) -> list[str]:
    return [line.rstrip(";") for line in script.splitlines() if line.strip()]
