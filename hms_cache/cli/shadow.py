"""``hms-cache shadow``."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hms_cache.cli.options import Number
from hms_cache.cli.terminal import plain_console, shown

if TYPE_CHECKING:
    from hms_cache.app.shadow.metastore import Endpoint
    from hms_cache.authentication.servers import Address

_SHOWN_DIFFERENCES = 50


@click.command()
@click.option(
    "--server",
    metavar="THRIFT_URI",
    default="thrift://127.0.0.1:9083",
    show_default=True,
    help="The primary: clients receive its answers.",
)
@click.option("--against", metavar="THRIFT_URI", help="The metastore whose answers are compared.")
@click.option(
    "--server-auth",
    metavar="TEXT",
    help="How to authenticate with --server, e.g. kerberos server=hive/_HOST@REALM; see docs/security.md.",
)
@click.option("--against-auth", metavar="TEXT", help="How to authenticate with --against.")
@click.option(
    "--listen",
    "bind",
    metavar="HOST:PORT",
    default="127.0.0.1:9183",
    show_default=True,
    help="Address for clients; port 0 picks a free one.",
)
@click.option(
    "--record", type=click.Path(dir_okay=False, path_type=Path), help="Append the reads of clients to this file."
)
@click.option(
    "--replay",
    "recording",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Send the reads in this file to both, instead of listening.",
)
@click.option("--walk", is_flag=True, help="Read the whole catalog through both, instead of listening.")
@click.option(
    "--table",
    "tables",
    metavar="PATTERN",
    multiple=True,
    help="With --walk: only these, as database.table with * and ?; may be given several times.",
)
@click.option("--duration", "duration_s", type=Number(min=0, max=1e9), help="Listen for this number of seconds.")
@click.option("--times", is_flag=True, help="Compare times of creation and change, too.")
@click.option("--ids", is_flag=True, help="Compare ids of objects, too, if the two share a database.")
@click.option("--json", "as_json", is_flag=True, help="The report as one JSON object.")
def shadow(
    *,
    server: str,
    against: str | None,
    server_auth: str | None,
    against_auth: str | None,
    bind: str,
    record: Path | None,
    recording: Path | None,
    walk: bool,
    tables: tuple[str, ...],
    duration_s: float | None,
    times: bool,
    ids: bool,
    as_json: bool,
) -> None:
    """Send the same reads to two metastores and report every difference between their answers.

    Listens for clients, forwards their calls to the primary and sends reads to the other one as well, until Ctrl-C.
    Writes are sent to the primary only. A difference is reported if it remains when both are asked again. Connections
    that authenticate with SASL are forwarded, but their calls cannot be read: use --walk or --replay to compare.

    Exit status 1 if answers differ, a metastore did not answer, or nothing was compared.
    """
    from hms_cache.app.shadow import running
    from hms_cache.app.shadow.comparing import Rules

    logging.getLogger("thrift").addHandler(logging.NullHandler())  # it would repeat the report
    if walk and recording:
        raise click.UsageError("--walk and --replay exclude each other")
    if (walk or recording) and record:
        raise click.UsageError("--record cannot be used with --walk or --replay")
    if against is None and (walk or recording or not record):
        raise click.UsageError("--against is missing: the metastore to compare with")
    if tables and not walk:
        raise click.UsageError("--table can only be used with --walk")
    rules = Rules(compare_times=times, compare_ids=ids)
    primary = _endpoint(server, server_auth)
    other = _endpoint(against, against_auth) if against else None
    if other is not None and recording:
        report = running.replay(recording, primary, other, rules)
    elif other is not None and walk:
        report = running.walk(primary, other, rules, tables or ("*",))
    else:
        report = running.listen(
            _address(bind), primary, other, rules, record=record, announce=_announce, duration_s=duration_s
        )
    _show(report.as_json(), as_json)
    if other is not None and not report.is_clean:
        sys.exit(1)


def _address(text: str) -> Address:
    """Parses a URI or `host:port`. Raises ConfigurationError."""
    from hms_cache.authentication.servers import Address

    return Address.parse(text if "://" in text else f"thrift://{text}")


def _endpoint(text: str, auth: str | None) -> Endpoint:
    """Returns the address with its authentication. Raises ConfigurationError."""
    from hms_cache.app.shadow.metastore import Endpoint
    from hms_cache.client import authentication_of

    endpoint = Endpoint(_address(text), authentication_of(auth or ""))
    endpoint.authentication.check(endpoint.address)
    return endpoint


def _announce(address: Address) -> None:
    click.echo(f"listening {address}", err=True)


def _show(report: dict[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(report, indent=2))
        return
    from rich.table import Table

    console = plain_console()
    outcomes = list(report["totals"])
    table = Table("method", *outcomes, title=f"{report['primary']} and {report['other'] or 'no other'}")
    for column in table.columns[1:]:
        column.justify = "right"
    for method, counts in report["methods"].items():
        table.add_row(method, *(str(counts[outcome] or "") for outcome in outcomes))
    console.print(table)
    for call in report["differences"][:_SHOWN_DIFFERENCES]:
        console.print(shown(f"{call['method']}({call['arguments']})"), soft_wrap=True)
        for difference in call["differences"]:
            where = difference["path"] or "answer"
            console.print(shown(f"  {where}: {difference['primary']} | {difference['other']}"), soft_wrap=True)
    left_out = report["totals"]["different"] - min(len(report["differences"]), _SHOWN_DIFFERENCES)
    if left_out:
        console.print(f"{left_out} more calls differ; --json shows up to 1000 of all")
    for note, count in report["notes"].items():
        console.print(shown(f"{count} times: {note}"), soft_wrap=True)
    if not any(report["totals"].values()):
        console.print("nothing was compared")
