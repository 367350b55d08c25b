"""``hms-cache serve``."""

from __future__ import annotations

from typing import Any

import click

from hms_cache.cli.options import configuration_options, load_configuration


@click.command()
@click.option("--host", "server__host", metavar="HOST", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", "server__port", metavar="PORT", type=int, help="Port; 0 picks a free one.  [default: 9083]")
@click.option("--workers", "server__workers", metavar="N", type=int, help="Number of server processes.  [default: 1]")
@configuration_options
def serve(**options: Any) -> None:
    """Run the metastore until SIGTERM or Ctrl-C.

    Without options: SQLite in the working directory (the schema is created), loopback, Hive's port 9083. Prints `ready
    thrift://HOST:PORT` when clients can connect.
    """
    from hms_cache.app.child_processes import exit_process
    from hms_cache.app.signals import hold_reloads

    hold_reloads()
    if load_configuration(**options).settings.server.workers > 1:
        from hms_cache.app.worker_processes import run_workers

        run_workers(lambda: load_configuration(**options))
    else:
        from hms_cache.app.process import run

        run(lambda: load_configuration(**options))
    exit_process(0)
