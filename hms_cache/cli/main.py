"""The program ``hms-cache``: the group of its commands, and the conversion of errors to exit statuses.

Exit status: 0 done; 1 the command failed; 2 the command line or the configuration is invalid.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from types import TracebackType
from typing import NoReturn

import click

from hms_cache.cli.check import check
from hms_cache.cli.commands import COMMANDS
from hms_cache.cli.config import config
from hms_cache.cli.demo.command import demo
from hms_cache.cli.jobs import jobs
from hms_cache.cli.locks import locks
from hms_cache.cli.management import events, status
from hms_cache.cli.schema import schema
from hms_cache.cli.serve import serve
from hms_cache.cli.shadow import shadow
from hms_cache.cli.top import top
from hms_cache.cli.version import version
from hms_cache.errors import ConfigurationError, DatabaseUnavailableError, HmsCacheError, StartupError
from hms_cache.program_version import program_version


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(program_version(), prog_name="hms-cache")
def commands() -> None:
    """A Hive Metastore whose cache is never wrong."""


for _command in (serve, schema, check, config, status, top, events, locks, *COMMANDS, jobs, shadow, demo, version):
    commands.add_command(_command)


def _redacted(text: str) -> str:
    """Returns the text without secrets. Imported on first use, because help and version load no settings."""
    from hms_cache.config.secrets import redacted

    return redacted(text)


def _printable(text: str) -> str:
    """Also escapes control characters: parts of the text may come from servers, and from users who choose names."""
    from hms_cache.cli.terminal import shown_lines

    return shown_lines(_redacted(text))


def main() -> NoReturn:
    """Entry point. The program's own exceptions are printed as a few lines; a defect is printed with its traceback."""
    if os.getpid() == 1:
        # In a container: the kernel does not apply the default action of signals to process 1, so `docker stop` would
        # wait and then kill it.
        signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))
    sys.excepthook = _show_defect
    threading.excepthook = lambda failed: _show_defect(failed.exc_type, failed.exc_value, failed.exc_traceback)
    try:
        commands(standalone_mode=True)
    except ConfigurationError as error:
        for problem in error.problems:
            click.echo(_printable(f"hms-cache: {problem}"), err=True)
        sys.exit(2)
    except StartupError as error:
        click.echo(_printable(f"hms-cache: {error.problem}"), err=True)
        if error.remedy:
            click.echo(_printable(error.remedy), err=True)
        sys.exit(1)
    except DatabaseUnavailableError as error:
        click.echo(_printable(f"hms-cache: the metastore database cannot be used now: {error}"), err=True)
        click.echo("Check that it runs and is reachable from here, and the address in database.url.", err=True)
        sys.exit(1)
    except HmsCacheError as error:
        click.echo(_printable(f"hms-cache: {error}"), err=True)
        sys.exit(1)
    sys.exit(0)


def _show_defect(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    """Prints the traceback without secrets, which texts of libraries may contain."""
    sys.stderr.write(_redacted("".join(traceback.format_exception(kind, error, trace))))
