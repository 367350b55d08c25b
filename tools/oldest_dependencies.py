"""Prints the oldest release of each dependency that `pyproject.toml` allows, as constraints for pip.

`python tools/oldest_dependencies.py > constraints.txt`, then
`pip install --constraint constraints.txt .[postgresql,tls,ldap,jwt]`.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

#: Those of a server; tools of tests and PySpark have one release that is tested, the newest.
EXTRAS = ("postgresql", "tls", "ldap", "jwt")


def constraints() -> list[str]:
    """`name==version` of each requirement that names a lowest version, in the order of the declaration."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = list(project["dependencies"])
    for extra in EXTRAS:
        requirements += project["optional-dependencies"][extra]
    found = [re.match(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)", requirement) for requirement in requirements]
    return [f"{match[1]}=={match[2]}" for match in found if match is not None]


if __name__ == "__main__":
    print("\n".join(constraints()))
