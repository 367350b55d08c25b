"""Generate `hms_cache/thrift_gen`, modules and their type stubs, from `thrift_idl`.

Usage: `python tools/generate_thrift.py` writes the packages, `python tools/generate_thrift.py --check` compares them
with what would be written and exits with status 1 if they differ.

Needs the Apache Thrift compiler 0.17 (`apt-get install thrift-compiler`; another one may be named with `--thrift`). The
version is pinned because each compiler writes slightly different text.

Options of the Python generator: `slots` saves memory, `dynamic` leaves reading and writing to the runtime's C extension
(a third of the code, a quarter of the import time), and `dynexc` gives exceptions the base class in
`hms_cache/thrift_gen/base.py`, which is written by hand (`dynimport` takes one import and no comma, hence the star).
"""

from __future__ import annotations

import argparse
import filecmp
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from thrift_stubs import write_stubs

ROOT = Path(__file__).resolve().parent.parent
IDL = ROOT / "thrift_idl" / "hive_metastore.thrift"
TARGET = ROOT / "hms_cache" / "thrift_gen"
PACKAGES = ("fb303", "hive_metastore")
COMPILER_VERSION = "0.17."
GENERATOR = (
    "py:slots,dynamic,dynexc=ThriftException,dynfrozenexc=ThriftException,"
    "dynimport=from hms_cache.thrift_gen.base import *\n"
)


def check_compiler(compiler: str) -> None:
    """Refuse a compiler that is missing or of another version than the committed code was made with."""
    if shutil.which(compiler) is None:
        sys.exit(f"{compiler}: not found; install the Apache Thrift compiler (Debian: apt-get install thrift-compiler)")
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if COMPILER_VERSION not in version:
        sys.exit(f"{compiler}: is '{version}', but the generated code is made with Thrift {COMPILER_VERSION}x")


def generate(compiler: str, directory: Path) -> None:
    """Write the packages below `directory`, without the compiler's extras (command line scripts, outer packages)."""
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([compiler, "-r", "-out", scratch, "--gen", GENERATOR, str(IDL)], check=True)
        for package in PACKAGES:
            source = Path(scratch) / "hms_cache" / "thrift_gen" / package
            target = directory / package
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            for module in sorted(source.glob("*.py")):
                shutil.copyfile(module, target / module.name)
            write_stubs(compiler, IDL.with_name(f"{package}.thrift"), target, "hms_cache.thrift_gen")


def differences(fresh: Path) -> list[str]:
    """Names of generated modules that are missing, changed or left over in the committed packages."""
    found = []
    for package in PACKAGES:
        expected = {path.name for path in (fresh / package).glob("*.py*")}
        present = {path.name for path in (TARGET / package).glob("*.py*")}
        found += [f"{package}/{name}: missing" for name in sorted(expected - present)]
        found += [f"{package}/{name}: not generated" for name in sorted(present - expected)]
        found += [
            f"{package}/{name}: differs"
            for name in sorted(expected & present)
            if not filecmp.cmp(fresh / package / name, TARGET / package / name, shallow=False)
        ]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Generate hms_cache/thrift_gen from thrift_idl.")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--thrift", default="thrift", metavar="PROGRAM", help="the Thrift compiler")
    options = parser.parse_args()
    check_compiler(options.thrift)
    if not options.check:
        generate(options.thrift, TARGET)
        return 0
    with tempfile.TemporaryDirectory() as fresh:
        generate(options.thrift, Path(fresh))
        found = differences(Path(fresh))
    for line in found:
        print(line)
    if found:
        print("run: python tools/generate_thrift.py")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
