"""The program declares what it imports, so that it runs in an environment with nothing else."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

from tests.architecture.sources import imports_of

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: Parts that run only where extras are installed, separated by blanks.
WITH_EXTRAS = {
    "jobs/": "spark",
    "cli/demo/": "spark",
    "key_stores/": "tls",
    "store/engine/drivers/postgresql_driver.py": "postgresql",
    "app/security/revocation.py": "tls",
    "app/security/http_port.py": "jwt",
    "authentication/bearer_tokens.py": "jwt",
    "authentication/digest_md5.py": "kerberos",
    "authentication/directory.py": "ldap",
    "authentication/directory_filters.py": "ldap",
    "authentication/key_set.py": "jwt",
    "authentication/kerberos.py": "kerberos",
    "client/authentication/": "kerberos",
    "app/security/authentication.py": "kerberos ldap",
    "app/security/checks.py": "kerberos ldap tls",
}
#: Parts of a library with a name of their own.
BROUGHT_BY = {"markupsafe": "jinja2", "py4j": "pyspark"}


def normalized(requirement: str) -> str:
    """The name of a distribution without extras and versions."""
    return re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-")  # type: ignore[index]


def declared(extras: str | None) -> set[str]:
    requirements = list(PROJECT["dependencies"])
    for extra in (extras or "").split():
        requirements += PROJECT["optional-dependencies"][extra]
    return {normalized(requirement) for requirement in requirements}


@cache
def imports() -> list[tuple[str, str]]:
    """(module's path in the package, distribution) of each import of foreign code."""
    return list(_imports())


def _imports() -> Iterator[tuple[str, str]]:
    distributions = packages_distributions()
    package = ROOT / "hms_cache"
    for path in package.rglob("*.py"):
        for node in imports_of(path):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in {name.partition(".")[0] for name in names} - {"hms_cache"} - sys.stdlib_module_names:
                found = BROUGHT_BY.get(name) or normalized(distributions.get(name, [name])[0])
                yield str(path.relative_to(package)), found


def test_every_import_is_declared() -> None:
    missing = set()
    for module, distribution in imports():
        extra = next((extra for part, extra in WITH_EXTRAS.items() if module.startswith(part)), None)
        if distribution not in declared(extra):
            missing.add(f"{module}: {distribution}")
    assert not missing


def test_every_declaration_is_used() -> None:
    used = {distribution for _, distribution in imports()}
    assert declared(None) <= used
