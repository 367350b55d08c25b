"""``hms-cache check``."""

from __future__ import annotations

import logging
import sys
from typing import Any

import click

from hms_cache.cli.options import configuration_options, load_configuration
from hms_cache.cli.terminal import shown_lines


@click.command()
@click.option(
    "--peer", "peers", metavar="THRIFT_URI", multiple=True, help="Another metastore that writes to the database."
)
@click.option(
    "--peer-auth",
    metavar="TEXT",
    help="How to authenticate with --peer, e.g. kerberos server=hive/_HOST@REALM; see docs/security.md.",
)
@configuration_options
def check(*, peers: tuple[str, ...], peer_auth: str | None, **options: Any) -> None:
    """Check whether a server can run here, and whether its cache is safe to use.

    All findings are shown at once, each with its remedy. Exit status 1 if one of them is an error.
    """
    from hms_cache.app.checks import check_honoured, run_checks
    from hms_cache.client import authentication_of
    from hms_cache.config.secrets import redacted

    logging.getLogger("thrift").addHandler(logging.NullHandler())  # it would repeat the findings
    configuration = load_configuration(**options)
    findings = run_checks(configuration.settings, peers, authentication_of(peer_auth or ""))
    check_honoured(findings, configuration)
    for name in findings.passed:
        click.echo(f"ok       {name}")
    for finding in findings.found:
        click.echo(shown_lines(redacted(f"{finding.severity:<8} {finding.problem}\n         {finding.remedy}")))
    if any(finding.severity == "error" for finding in findings.found):
        sys.exit(1)
