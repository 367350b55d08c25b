"""``hms-cache demo secure``: a KDC, a server with Kerberos and a policy, and PySpark with a keytab."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from importlib import util
from pathlib import Path
from typing import Any

from hms_cache.cli.demo.realm import KerberosRealm
from hms_cache.cli.demo.server_process import ServerProcess
from hms_cache.client import MetastoreClient
from hms_cache.errors import HmsCacheError, StartupError

REALM = "DEMO.TEST"
SERVICE = f"hive/localhost@{REALM}"
USER = f"ann@{REALM}"

POLICY = """\
[[grants]]
users = ["ann"]
actions = ["read", "create", "alter", "drop", "write"]
databases = ["shop"]
"""

_SITE = """\
<configuration>
<property><name>hadoop.security.authentication</name><value>kerberos</value></property>
<property><name>hadoop.rpc.protection</name><value>privacy</value></property>
</configuration>
"""
"""Makes Hadoop's classes in Spark log in, and encrypt their connections."""

Session = Callable[..., list[Any]]
"""(scratch, script, *arguments, environment=…): runs a Spark session, shows its steps, and returns them."""


def run_secure(scratch: Path, database: str, console: Any, session: Session) -> None:
    """Runs the demo. Raises StartupError if something is not installed, HmsCacheError if the result is not as
    expected."""
    if util.find_spec("gssapi") is None:
        raise StartupError(
            "the demo of Kerberos needs the package gssapi",
            remedy="Install it: pip install 'hms-cache[demo,kerberos]'; it is compiled against libkrb5-dev.",
        )
    with ExitStack() as stack:
        (scratch / "realm").mkdir()
        realm = KerberosRealm(scratch / "realm", REALM)
        stack.callback(realm.close)
        console.print(f"KDC of [bold]{REALM}[/bold] up on port {realm.port}, with {SERVICE} and {USER}")
        server = _server(scratch, database, realm)
        server.start()
        stack.callback(server.stop)
        console.print(f"server up at [bold]{server.uri}[/bold]; its policy:")
        console.print(POLICY, markup=False, style="dim")
        console.print(f"a client without a ticket: [yellow]{_refusal(server)}[/yellow]", soft_wrap=True)
        steps = session(
            scratch,
            "secure_script",
            *(f"thrift://localhost:{server.port}", str(server.warehouse)),
            *(USER, str(realm.keytab("ann")), SERVICE, str(realm.configuration)),
            environment={"HADOOP_CONF_DIR": str(_hadoop_configuration(scratch))},
        )
    refused = sum(1 for step in steps if step["refused"])
    console.print(f"[green]done[/green]: {len(steps) - refused} steps allowed, {refused} denied; everything stopped")


def _server(scratch: Path, database: str, realm: KerberosRealm) -> ServerProcess:
    policy = scratch / "policy.toml"
    policy.write_text(POLICY)
    return ServerProcess(
        scratch / "server",
        database,
        {
            "authentication.kerberos_enabled": "true",
            "authentication.kerberos_principal": SERVICE,
            "authentication.kerberos_keytab_file": realm.keytab("hive/localhost"),
            "authentication.quality_of_protection": "auth-conf",
            "authorization.provider": "policy",
            "authorization.policy_file": policy,
        },
        {"KRB5_CONFIG": str(realm.configuration)},
    )


def _hadoop_configuration(scratch: Path) -> Path:
    directory = scratch / "hadoop"
    directory.mkdir()
    (directory / "core-site.xml").write_text(_SITE)
    return directory


def _refusal(server: ServerProcess) -> str:
    """Returns the error for a client that does not authenticate."""
    try:
        with MetastoreClient(server.uri) as client:
            client.call("get_all_databases")
    except Exception as error:
        return str(error)
    raise HmsCacheError("a client without a ticket was not refused")
