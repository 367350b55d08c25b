"""How a job is described, what it is given, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hms_cache.jobs.frame.progress import Progress
from hms_cache.values import frozen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@frozen
class Option:
    """One option of a job, ``--name`` on the command line and ``JobRun.options["name"]`` in its main.

    ``name`` is in lower case with underscores; the command line shows hyphens. ``kind`` is ``str``, ``int``, ``float``
    or ``bool`` (a flag). A ``multiple`` one is a tuple, empty if it is not given.
    """

    name: str
    help: str
    kind: type = str
    default: Any = None
    required: bool = False
    multiple: bool = False
    choices: tuple[str, ...] = ()
    metavar: str | None = None
    minimum: int | None = None
    """Smallest value of an ``int``."""


@frozen
class ResultTable:
    """A part of a report: a title, names of columns, rows."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


@frozen
class JobResult:
    """What a job did, or in a dry run would do.

    ``summary``: what it counted, in the order it is shown. ``exit_status``: that of the process; 0 done, 3 the job ran
    well and found what its caller must look at (1 and 2 are for failures and for what cannot be used).
    """

    summary: Mapping[str, object]
    tables: Sequence[ResultTable] = ()
    exit_status: int = 0

    def as_json(self, dry_run: bool) -> dict[str, Any]:
        """For programs: the summary, and rows of the tables by their titles."""
        tables = {
            table.title: [dict(zip(table.columns, row, strict=True)) for row in table.rows] for table in self.tables
        }
        return {"dry_run": dry_run, "summary": dict(self.summary), "tables": tables}


@frozen
class JobRun:
    """What a job's main is given. In a dry run it reads and counts as always, and changes nothing."""

    session: SparkSession | None
    options: Mapping[str, Any]
    dry_run: bool = False
    progress: Progress = field(default_factory=Progress)

    @property
    def spark(self) -> SparkSession:
        """The session of a job that needs Spark."""
        assert self.session is not None, "a job that uses Spark says so in its definition"
        return self.session


@frozen
class Job:
    """A job by its name. ``main`` is ``module:function``, imported when the job runs: it may import PySpark."""

    name: str
    summary: str
    main: str
    options: Sequence[Option] = ()
    description: str = ""
    """Further paragraphs of its help."""

    spark_settings: Callable[[Mapping[str, Any]], Mapping[str, str]] | None = None
    """Settings of Spark that it needs, by its options; those that the caller gives win."""

    needs_spark: bool = True
    """A job that does not runs without PySpark and Java."""

    def load_main(self) -> Callable[[JobRun], JobResult]:
        """The function that does it."""
        module, _, function = self.main.partition(":")
        main: Callable[[JobRun], JobResult] = getattr(import_module(module), function)
        return main

    def run(
        self,
        spark: SparkSession | None,
        options: Mapping[str, Any] | None = None,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> JobResult:
        """Run it in this session, None for a job that needs no Spark; options that are not given have their defaults.

        Raises ConfigurationError (or a KeyError for an option that it does not have), and whatever the job raises.
        """
        from hms_cache.errors import ConfigurationError

        given = dict(options or {})
        values: dict[str, Any] = {}
        for option in self.options:
            value = given.pop(option.name, None)
            if value is None:
                value = () if option.multiple else (bool(option.default) if option.kind is bool else option.default)
            if value is None and option.required:
                raise ConfigurationError(f"job {self.name} needs the option {option.name}")
            values[option.name] = value
        if given:
            raise KeyError(f"job {self.name} has no option {', '.join(sorted(given))}")
        return self.load_main()(JobRun(spark, values, dry_run, progress or Progress()))
