"""An MIT Kerberos realm for demos and tests: a KDC as a process on loopback, principals and keytabs."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from hms_cache.errors import HmsCacheError, StartupError

TOOLS = ("krb5kdc", "kdb5_util", "kadmin.local")
_PATHS = ("/usr/sbin", "/usr/lib/mit/sbin")
"""Directories of these tools, in addition to PATH."""

_STARTS_WITHIN_S = 30.0
_CHECK_INTERVAL_S = 0.05


def tool(name: str) -> str | None:
    """Returns the path of a Kerberos tool; None if it is not installed."""
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), *_PATHS)))


class KerberosRealm:
    """A running KDC with its files in one directory. `close` stops it."""

    def __init__(self, directory: Path, name: str) -> None:
        """Creates the realm and starts the KDC. Raises StartupError if the tools are missing, HmsCacheError if the KDC
        does not start."""
        if any(tool(one) is None for one in TOOLS):
            raise StartupError(
                "MIT Kerberos' KDC is not installed", remedy="On Debian: apt-get install krb5-kdc krb5-admin-server."
            )
        self.directory = directory
        self.name = name
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.configuration = directory / "krb5.conf"
        """Value of KRB5_CONFIG for clients and servers of the realm."""
        self.configuration.write_text(
            f"[libdefaults]\n default_realm = {name}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            f" rdns = false\n dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
            f"[realms]\n {name} = {{\n  kdc = 127.0.0.1:{self.port}\n }}\n"
        )
        profile = directory / "kdc.conf"
        profile.write_text(
            f'[kdcdefaults]\n kdc_listen = ""\n kdc_tcp_listen = 127.0.0.1:{self.port}\n'
            f"[realms]\n {name} = {{\n  database_name = {directory / 'principal'}\n"
            f"  key_stash_file = {directory / 'stash'}\n  acl_file = {directory / 'acl'}\n }}\n"
            f"[logging]\n kdc = FILE:{directory / 'kdc.log'}\n"
        )
        self.environment = {
            **os.environ,
            "PATH": os.pathsep.join((os.environ.get("PATH", ""), *_PATHS)),
            "KRB5_CONFIG": str(self.configuration),
            "KRB5_KDC_PROFILE": str(profile),
        }
        self.run("kdb5_util", "create", "-s", "-P", "master", "-r", name)
        self._kdc = subprocess.Popen(
            [str(tool("krb5kdc")), "-n"], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._wait()

    def _wait(self) -> None:
        ends_at_s = time.monotonic() + _STARTS_WITHIN_S
        while time.monotonic() < ends_at_s and self._kdc.poll() is None:
            with socket.socket() as attempt:
                if attempt.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(_CHECK_INTERVAL_S)
        self.close()
        raise HmsCacheError(f"the KDC did not start; its log is {self.directory / 'kdc.log'}")

    def keytab(self, principal: str) -> Path:
        """Creates a keytab with a new key for the principal, and the principal if it does not exist."""
        file = self.directory / f"{principal.replace('/', '_')}.keytab"
        file.unlink(missing_ok=True)
        self.run("kadmin.local", "-r", self.name, "-q", f"addprinc -randkey {principal}")
        self.run("kadmin.local", "-r", self.name, "-q", f"ktadd -k {file} {principal}")
        return file

    def close(self) -> None:
        """Stops the KDC."""
        self._kdc.terminate()
        self._kdc.wait()

    def run(self, name: str, *arguments: str) -> None:
        """Runs a Kerberos tool in the realm. Raises HmsCacheError with its error output if it fails."""
        done = subprocess.run([str(tool(name)), *arguments], env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise HmsCacheError(f"{name} failed: {done.stderr.strip()}")
