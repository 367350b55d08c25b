"""Images built without a docker daemon (buildah), and containers of them (runc) as the compose file would have them.

Both are of Debian: ``apt-get install buildah runc debootstrap``. Where no registry answers, the base image is made of
Debian's own packages: its Python is 3.11 instead of 3.12, nothing else that the Dockerfile uses differs.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]

_BUILD_LIMIT_S = 1_800
_TOOLS = ("buildah", "runc", "debootstrap")
_CAPABILITY_SETS = ("bounding", "effective", "permitted", "inheritable", "ambient")


def reason_against() -> str | None:
    """Returns why images cannot be built or run here; None if they can."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        return f"needs {', '.join(missing)} (Debian has packages of these names)"
    if os.geteuid() != 0:
        return "needs root: layers are unpacked with their owners"
    return None


@dataclass(frozen=True)
class Image:
    """An image: its root file system, mounted, and its configuration."""

    root: Path
    configuration: dict[str, Any]


class Builder:
    """Builds images into a storage of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._log = directory / "build.log"

    def build(self, target: str) -> Image:
        """Builds a stage of docker/Dockerfile. Raises RuntimeError with the end of the log if it fails."""
        where = ["--isolation", "chroot", "--format", "docker", "--file", "docker/Dockerfile", "--target", target]
        ignored = ["--ignorefile", "docker/Dockerfile.dockerignore"]
        self._buildah("build", *where, *ignored, "--tag", target, ".")
        container = self._buildah("from", "--pull-never", f"localhost/{target}").strip()
        described = json.loads(self._buildah("inspect", container))
        return Image(Path(self._buildah("mount", container).strip()), described["Docker"]["config"])

    def provide(self, base: str) -> None:
        """Provides the base image under its name: from its registry, or built of Debian's packages."""
        name = f"docker.io/library/{base}"
        try:
            self._buildah("pull", "--policy", "missing", name)
        except RuntimeError:
            root = self._directory / "base"
            packages = "--include=ca-certificates,python3,python3-pip,python3-venv"
            self._run(["debootstrap", "--variant=minbase", packages, "bookworm", str(root)])
            for link in ("python", "pip"):
                (root / "usr/local/bin" / link).symlink_to(f"/usr/bin/{link}3")
            (root / "usr/lib/python3.11/EXTERNALLY-MANAGED").unlink()
            # What slim images do.
            shutil.rmtree(root / "usr/share/man")
            (root / "etc/dpkg/dpkg.cfg.d/slim").write_text("path-exclude=/usr/share/man/*\n")
            # This machine may reach the package index through a proxy that it trusts.
            certificates = Path("/etc/ssl/certs/ca-certificates.crt")
            shutil.copyfile(certificates, root / certificates.relative_to("/"))
            container = self._buildah("from", "scratch").strip()
            self._buildah("add", "--quiet", container, str(root), "/")
            self._buildah("config", "--env", "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", container)
            self._buildah("commit", "--rm", container, name)
            shutil.rmtree(root)

    def close(self) -> None:
        """Unmounts and deletes everything."""
        self._buildah("rm", "--all")
        self._buildah("rmi", "--all", "--force")

    def _buildah(self, command: str, *arguments: str) -> str:
        storage = ["--root", self._directory / "storage", "--runroot", self._directory / "run"]
        return self._run(["buildah", *map(str, storage), "--storage-driver", "vfs", command, *arguments])

    def _run(self, command: Sequence[str]) -> str:
        with self._log.open("ab") as log:
            done = subprocess.run(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, timeout=_BUILD_LIMIT_S
            )
            log.write(done.stdout)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command[:8])} …: {self._log.read_text(errors='replace')[-3000:]}")
        return done.stdout.decode()


class Container:
    """A service of the compose file: its user, read-only root, mounts and command, on this machine's network."""

    def __init__(
        self,
        image: Image,
        service: dict[str, Any],
        directory: Path,
        *,
        environment: dict[str, str],
        volumes: dict[str, Path],
        secrets: dict[str, Path],
    ) -> None:
        self.id = f"hms-cache-{os.getpid()}-{directory.name}"
        self._state = directory / "state"
        self._bundle = directory / "bundle"
        self._bundle.mkdir(parents=True)
        self._log = directory / "log"
        self._hosts = directory / "hosts"
        self._hosts.write_text(f"127.0.0.1 localhost database one other {self.id}\n")
        self._environment = _pairs(image.configuration["Env"]) | service.get("environment", {}) | environment
        self._service = service
        self._image = image
        mounts = self._mounts(volumes, secrets)
        (self._bundle / "config.json").write_text(json.dumps(self._specification(mounts)))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """What the container has written so far."""
        return self._log.read_text(errors="replace")

    @property
    def output(self) -> IO[bytes]:
        """Standard output, when it was started with pipes."""
        assert self._process is not None and self._process.stdout is not None
        return self._process.stdout

    @property
    def is_running(self) -> bool:
        """Whether its process has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self, *, with_pipes: bool = False) -> None:
        """Starts it, also after it has ended; with pipes for standard input and output, or all output to the log."""
        self._runc("delete", "--force", self.id)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                ["runc", "--root", str(self._state), "run", "--bundle", str(self._bundle), self.id],
                stdin=subprocess.PIPE if with_pipes else subprocess.DEVNULL,
                stdout=subprocess.PIPE if with_pipes else log,
                stderr=log,
                start_new_session=True,
            )

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """A command within the running container, as its user."""
        return self._runc("exec", self.id, *command)

    def signal(self, number: signal.Signals) -> None:
        """A signal to its first process."""
        self._runc("kill", self.id, number.name)

    def finish(self, limit_s: float) -> int:
        """Ends standard input and waits; the exit status."""
        assert self._process is not None
        if self._process.stdin is not None:
            self._process.stdin.close()
        return self._process.wait(limit_s)

    def close(self) -> None:
        """Deletes everything of it."""
        self._runc("delete", "--force", self.id)
        if self._process is not None:
            self._process.wait(60)

    def _runc(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["runc", "--root", str(self._state), *arguments]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)

    def _mounts(self, volumes: dict[str, Path], secrets: dict[str, Path]) -> list[dict[str, Any]]:
        bound = [(self._hosts, "/etc/hosts", "ro")]
        bound += [(secrets[name], f"/run/secrets/{name}", "ro") for name in self._service.get("secrets", ())]
        for volume in self._service["volumes"]:
            name, _, target = volume.partition(":")
            bound.append((volumes[name], target, "rw"))
        mounts = [
            _mount("/proc", "proc", "proc"),
            _mount("/dev", "tmpfs", "tmpfs", "nosuid", "mode=755"),
            _mount("/dev/shm", "tmpfs", "shm", "nosuid", "noexec", "nodev", "mode=1777"),
        ]
        for given in self._service["tmpfs"]:
            target, _, execution = given.partition(":")
            mounts.append(_mount(target, "tmpfs", "tmpfs", "nosuid", "nodev", execution or "noexec", "mode=1777"))
        return mounts + [_mount(target, "bind", str(source), "rbind", mode) for source, target, mode in bound]

    def _specification(self, mounts: list[dict[str, Any]]) -> dict[str, Any]:
        user, _, group = self._service["user"].partition(":")
        configuration = self._image.configuration
        assert self._service["cap_drop"] == ["ALL"]
        return {
            "ociVersion": "1.0.2",
            "hostname": self.id,
            "process": {
                "user": {"uid": int(user), "gid": int(group)},
                "args": [*configuration["Entrypoint"], *self._service["command"]],
                "env": [f"{name}={value}" for name, value in self._environment.items()],
                "cwd": configuration["WorkingDir"],
                "noNewPrivileges": "no-new-privileges:true" in self._service["security_opt"],
                "capabilities": {name: [] for name in _CAPABILITY_SETS},
            },
            "root": {"path": str(self._image.root), "readonly": self._service["read_only"]},
            "mounts": mounts,
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]},
        }


def _pairs(variables: list[str]) -> dict[str, str]:
    return dict(variable.split("=", 1) for variable in variables)


def _mount(target: str, kind: str, source: str, *options: str) -> dict[str, Any]:
    return {"destination": target, "type": kind, "source": source, "options": list(options)}
