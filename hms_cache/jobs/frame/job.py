"""Description of a job, its input and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hms_cache.jobs.frame.progress import Progress
from hms_cache.values import frozen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_cache.client import Metastores


@frozen
class Option:
    """One option of a job, ``--name`` on the command line and ``JobRun.options["name"]`` in its main.

    ``name`` is in lower case with underscores; the command line shows hyphens. ``kind`` is ``str``, ``int``, ``float``
    or ``bool`` (a flag). The value of a ``multiple`` option is a tuple, empty if it is not given.
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
    """Minimum of an ``int``."""


@frozen
class ResultTable:
    """A part of a report: a title, column names, rows."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


@frozen
class JobResult:
    """What a job did, or in a dry run would do.

    ``summary``: counts, in display order. ``exit_status``: that of the process; 0 for success, 3 if the job succeeded
    and found something that needs attention (1 and 2 are for failures and for invalid input).
    """

    summary: Mapping[str, object]
    tables: Sequence[ResultTable] = ()
    exit_status: int = 0

    def as_json(self, dry_run: bool) -> dict[str, Any]:
        """For programs: the summary, and the rows of the tables by their titles."""
        tables = {
            table.title: [dict(zip(table.columns, row, strict=True)) for row in table.rows] for table in self.tables
        }
        return {"dry_run": dry_run, "summary": dict(self.summary), "tables": tables}


@frozen
class JobRun:
    """Input of a job's main. In a dry run it reads and counts as usual, but changes nothing."""

    session: SparkSession | None
    options: Mapping[str, Any]
    dry_run: bool = False
    progress: Progress = field(default_factory=Progress)
    auth: str = ""
    """How it authenticates with metastores, from its option `auth` or, if that is missing, from the session."""

    @property
    def metastores(self) -> Metastores:
        """The metastores of the option `metastore`. Raises ConfigurationError."""
        from hms_cache.client import Metastores

        return Metastores.of_texts(self.options["metastore"], self.auth)

    @property
    def spark(self) -> SparkSession:
        """The session of a job that needs Spark."""
        assert self.session is not None, "a job that uses Spark must set needs_spark in its definition"
        return self.session


@frozen
class Job:
    """A job. ``main`` is ``module:function``, imported when the job runs: it may import PySpark."""

    name: str
    summary: str
    main: str
    options: Sequence[Option] = ()
    description: str = ""
    """Further paragraphs of its help."""

    spark_settings: Callable[[Mapping[str, Any]], Mapping[str, str]] | None = None
    """Spark settings that it needs, given its options; settings from the caller take precedence."""

    needs_spark: bool = True
    """False: the job runs without PySpark and Java."""

    def load_main(self) -> Callable[[JobRun], JobResult]:
        """Imports and returns the main function."""
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
        """Runs the job in this session (None for a job that does not need Spark); missing options have their defaults.

        Raises ConfigurationError (or KeyError for an unknown option), and the errors of the job.
        """
        from hms_cache.client import cancelling_tokens
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
        auth = _auth(values, spark) if values.get("metastore") or values.get("server") else ""
        main = self.load_main()
        with cancelling_tokens():
            return main(JobRun(spark, values, dry_run, progress or Progress(), auth))


def _auth(options: Mapping[str, Any], spark: SparkSession | None) -> str:
    """Returns the text that says how the job authenticates. Raises ConfigurationError."""
    from hms_cache.client import authentication_of
    from hms_cache.jobs.frame.session_keys import session_auth

    text = str(options.get("auth") or "")
    if not text and spark is not None:
        text = session_auth(spark)
    authentication_of(text)
    return text
