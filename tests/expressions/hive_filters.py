"""Random filter texts, and a metastore's answers to them.

`python -m tests.expressions.hive_filters HOST:PORT FILE` sends them to a Hive metastore (it must have a `default`
database; a table is created and dropped) and records its answers. `data/hive-4.0.1-filters.json.gz` was recorded in
this way from Hive 4.0.1 on MariaDB.

Cases that Hive answers incorrectly, or depending on its database, are omitted; each is named in
`hms_cache.expressions.binding`: texts of numbers with leading zeros, `_` and `%` in values, trailing blanks, timestamps
as text.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from pathlib import Path
from typing import Any

KEYS = [("s", "string"), ("i", "int"), ("d", "date")]
DEFAULT = "__HIVE_DEFAULT_PARTITION__"
RECORDED = Path(__file__).parent / "data" / "hive-4.0.1-filters.json.gz"
_TEXTS = ["a", "ab", "abc", "b", "B", "ba", "2024-01-01", "10", "9", "x.y", "x+y", "(z)", "a b", "é"]
_INTEGERS = ["0", "1", "2", "9", "10", "-5", "2147483647"]
_DATES = ["2024-01-01", "2024-02-29", "2023-12-31", "1970-01-01", "2024-01-31"]
_PATTERNS = ["a%", "%b", "a.*", ".*b.*", "_b", "a_c", ".", "x.y", "x%", "2024-0.*", "(%", "%"]
_OPERATORS = ["=", "==", "!=", "<>", "<", "<=", ">", ">="]


def random_rows(chance: random.Random, count: int) -> list[list[str]]:
    """Distinct rows; the default partition among the values."""
    rows: dict[tuple[str, ...], None] = {}
    while len(rows) < count:
        row = tuple(
            DEFAULT if chance.random() < 0.12 else chance.choice(values) for values in (_TEXTS, _INTEGERS, _DATES)
        )
        rows[row] = None
    return [list(row) for row in rows]


def random_filter(chance: random.Random, depth: int = 3) -> str:
    """A text in Hive 4.0.1's grammar."""
    if depth and chance.random() < 0.5:
        joined = chance.choice([" and ", " or ", " AND ", " Or "]).join(
            random_filter(chance, depth - 1) for _ in range(chance.randint(2, 3))
        )
        return f"({joined})" if chance.random() < 0.8 else joined
    return _leaf(chance)


def _leaf(chance: random.Random) -> str:
    name, kind = chance.choice(KEYS)
    spelt = chance.choice([name, name.upper(), f"`{name}`"])
    literals = [_literal(chance, kind) for _ in range(3)]
    negation = chance.choice(["", "not "])
    choice = 6 if chance.random() < 0.03 else chance.choice([0, 1, 2, 3, 4, 5, 7])
    if choice < 3:
        return f"{spelt} {chance.choice(_OPERATORS)} {literals[0]}"
    if choice == 3:
        return f"{literals[0]} {chance.choice(_OPERATORS)} {spelt}"
    if choice == 4:
        return f"({spelt}) {negation}in ({', '.join(literals[: chance.randint(1, 3)])})"
    if choice == 5:
        return f"{spelt} {negation}between {literals[0]} and {literals[1]}"
    if choice == 6:
        return f"{chance.choice(['s', 'S'])} like {_quoted(chance, chance.choice(_PATTERNS))}"
    structs = ", ".join(
        f"{chance.choice(['const ', ''])}struct({_literal(chance, 'string')}, {_literal(chance, 'int')})" for _ in "ab"
    )
    return f"(struct(s, i)) {negation}in ({structs})"


def _literal(chance: random.Random, kind: str) -> str:
    if chance.random() < 0.05:
        return _quoted(chance, DEFAULT)
    if kind == "int":
        return chance.choice(_INTEGERS)
    if kind == "date":
        date = chance.choice(_DATES)
        return chance.choice([date, f"date '{date}'", _quoted(chance, date)])
    return _quoted(chance, chance.choice(_TEXTS))


def _quoted(chance: random.Random, text: str) -> str:
    quote = chance.choice("'\"")
    return f"{quote}{text}{quote}"


def ask(client: Any, rows: list[list[str]], filters: list[str]) -> list[list[int] | str]:
    """A metastore's answers: for each filter the numbers of the rows, or its refusal. `client` is a raw Thrift client.

    Hive 4.0.1 on MariaDB cannot put LIKE into SQL, and refuses it together with integer keys.
    """
    from hmsclient.genthrift.hive_metastore import ttypes

    table = "random_filters"
    descriptor = ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema("k", "int", "")],
        inputFormat="i",
        outputFormat="o",
        serdeInfo=ttypes.SerDeInfo("s", "l", {}),
        parameters={},
        numBuckets=-1,
        bucketCols=[],
        sortCols=[],
    )
    made = ttypes.Table(
        tableName=table,
        dbName="default",
        owner="me",
        sd=descriptor,
        partitionKeys=[ttypes.FieldSchema(name, kind, "") for name, kind in KEYS],
        parameters={"EXTERNAL": "TRUE"},
        tableType="EXTERNAL_TABLE",
        createTime=1,
        lastAccessTime=0,
        retention=0,
    )
    client.create_table(made)
    try:
        numbers = {tuple(row): number for number, row in enumerate(rows)}
        partitions = [
            ttypes.Partition(
                values=row,
                dbName="default",
                tableName=table,
                sd=descriptor,
                parameters={},
                createTime=1,
                lastAccessTime=0,
            )
            for row in rows
        ]
        client.add_partitions(partitions)
        answers: list[list[int] | str] = []
        for text in filters:
            try:
                found = client.get_partitions_by_filter("default", table, text, -1)
            except ttypes.MetaException as refusal:
                answers.append(refusal.message)
            else:
                answers.append(sorted(numbers[tuple(partition.values)] for partition in found))
        return answers
    finally:
        client.drop_table("default", table, False)


def record(address: str, file: str, count: int = 3_000) -> None:
    from hmsclient.genthrift.hive_metastore import ThriftHiveMetastore
    from thrift.protocol.TBinaryProtocol import TBinaryProtocol
    from thrift.transport.TSocket import TSocket
    from thrift.transport.TTransport import TBufferedTransport

    host, _, port = address.partition(":")
    transport = TBufferedTransport(TSocket(host, int(port)))
    transport.open()
    chance = random.Random(4)
    rows = random_rows(chance, 60)
    filters = [random_filter(chance) for _ in range(count)]
    answers = ask(ThriftHiveMetastore.Client(TBinaryProtocol(transport)), rows, filters)
    transport.close()
    content = {"keys": KEYS, "rows": rows, "filters": list(zip(filters, answers, strict=True))}
    Path(file).write_bytes(gzip.compress(json.dumps(content, ensure_ascii=False).encode("utf-8"), mtime=0))


def recorded() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(gzip.decompress(RECORDED.read_bytes()))
    return content


if __name__ == "__main__":
    record(sys.argv[1], sys.argv[2])
