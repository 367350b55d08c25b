"""Hive's own statement files (`.q`) with their data, which are part of Spark's tests on Maven Central."""

from __future__ import annotations

import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.downloads import artifact, kept

_TESTS_OF_SPARK = "org.apache.spark:spark-hive_2.13:4.0.1:jar:tests"
_MEMBERS = ("ql/src/test/queries/clientpositive/", "data/")

PREPARATION = (
    "create table src (key string comment 'default', value string comment 'default') stored as textfile",
    "load data local inpath '{directory}/data/files/kv1.txt' into table src",
    "create table src1 (key string comment 'default', value string comment 'default') stored as textfile",
    "load data local inpath '{directory}/data/files/kv3.txt' into table src1",
    "create table srcpart (key string comment 'default', value string comment 'default')"
    " partitioned by (ds string, hr string) stored as textfile",
    *(
        f"load data local inpath '{{directory}}/data/files/kv1.txt' overwrite into table srcpart"
        f" partition (ds='2008-04-{day}', hr='{hour}')"
        for day in ("08", "09")
        for hour in (11, 12)
    ),
    "create table srcbucket (key int, value string) clustered by (key) into 2 buckets stored as textfile",
    "create table alltypesorc (ctinyint tinyint, csmallint smallint, cint int, cbigint bigint, cfloat float,"
    " cdouble double, cstring1 string, cstring2 string, ctimestamp1 timestamp, ctimestamp2 timestamp,"
    " cboolean1 boolean, cboolean2 boolean) stored as orc",
    "load data local inpath '{directory}/data/files/alltypesorc' overwrite into table alltypesorc",
)
"""The tables that the files read: what Hive's own tests begin with, without those of test classes."""

KEPT = ("src", "src1", "srcpart", "srcbucket", "alltypesorc")

FAMILIES = {
    "alter": r"add|alter|archive|avro",
    "create": r"compute|columnstats|create|ctas|concatenate|database|dbtxn|default_part|bucket[1-3]$",
    "describe": r"desc|drop|dynpart|escape|exchange|explain|external",
    "export": r"exim|fileformat|import_|input_part[1-9]$|inputddl|insert",
    "load": r"load|macro|metadata|misc_json|multi_insert$|nonreserved|null|orc_(analyze|create|diff|empty|min)|parquet",
    "partition": r"part(Init|_|cols)|partition_[a-v]|pcr$|ppr_pushdown|protectmode|quotedid|recursive|rename|repair",
    "show": r"schemeAuth|serde_|show|stats|symlink|tablename|touch|truncate|type_|uni|unset|update|view",
    "statistics": r"annotate",
}
"""By the beginnings of their names: those whose statements are about objects of the metastore, and some others."""

_LEFT_OUT = re.compile(
    r"index|auth|script|_win$|hook|hadoop20|exim_2[1-4]|dbtxnmgr_query|stats_(counter|aggregator|publisher)"
    # They read or write at the root of the file system.
    r"|newline|root_dir"
)
"""What Hive 4 has no longer, or its tests have and a command line has not."""

_PATHS = (
    (re.compile(r"\$\{system:test\.tmp\.dir\}"), "{directory}/tmp"),
    (re.compile(r"\$\{system:test\.warehouse\.dir\}"), "{directory}/wh"),
    (re.compile(r"\$\{system:(build\.dir|hive\.root)\}"), "{directory}/build"),
    (re.compile(r"\$\{system:test\.dfs\.mkdir\}"), "-mkdir -p"),
    (re.compile(r"\bdfs\s+-rmr\b"), "dfs -rm -r"),
    (re.compile(r"\bdfs\s+-lsr\b"), "dfs -ls -R"),
    (re.compile(r"\.\./\.\./data/"), "{directory}/data/"),
    (re.compile(r"(?<=['\"])ql/test/data/|(?<!\S)target/[t]mp/ql/test/data/"), "{directory}/ql/"),
    (re.compile(r"\bpfile:"), "file:"),
    (re.compile(r"\bhdfs:///"), "file:{directory}/hdfs/"),
    (re.compile(r"\bfile:///tmp/"), "file:{directory}/tmp/"),
)
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)
_PARTS = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--[^\n]*|\\;|;|[^;'\"`\\-]+|.", re.DOTALL)


def fetch() -> Path:
    """Returns the directory with the files and their data. Raises `FetchFailed`."""

    def unpack(path: Path) -> None:
        with zipfile.ZipFile(artifact(_TESTS_OF_SPARK)) as packed:
            packed.extractall(path, [name for name in packed.namelist() if name.startswith(_MEMBERS)])

    return kept("hive-query-files-4.0.1", unpack)


def names(family: str) -> list[str]:
    """Of the files of a family, without `.q`."""
    found = sorted(one.stem for one in (fetch() / _MEMBERS[0]).glob("*.q"))
    return [name for name in found if re.match(FAMILIES[family], name) and not _LEFT_OUT.search(name)]


def copy_data(directory: Path) -> None:
    """Copies files that statements load, or describe as tables; statements may change them."""
    shutil.copytree(fetch() / "data", directory / "data")
    for name in ("tmp", "hdfs", "build"):
        (directory / name).mkdir()


def statements(name: str) -> list[str]:
    """Returns the statements of one file, in order, one a line. `{directory}` in them is replaced."""
    text = (fetch() / _MEMBERS[0] / f"{name}.q").read_text()
    for pattern, path in _PATHS:
        text = pattern.sub(path, text)
    # Hive's console treats such a character as a pressed key.
    text = re.sub(r"[\x00-\x08\x0e-\x1f]", lambda found: f"\\{ord(found.group()):03o}", text)
    return [one for one in (" ".join(part.split()) for part in _split(text)) if one]


def _split(text: str) -> Iterator[str]:
    found = ""
    for part in _PARTS.findall(_COMMENT.sub("", text)):
        if part == ";":
            yield found
            found = ""
        elif not part.startswith("--") or found.rstrip().endswith(("'", '"')):
            found += part
    yield found
