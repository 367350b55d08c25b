"""The PySpark session of ``hms-cache demo secure``. Prints a JSON object per step.

Arguments: the metastore's URI, the warehouse directory, the user's principal and keytab, the server's principal, and
the Kerberos configuration.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from hms_cache.cli.demo.spark_script import start_session

ALLOWED: tuple[tuple[str, str], ...] = (
    ("create a database", "CREATE DATABASE shop"),
    ("create a table", "CREATE TABLE shop.orders (id INT, customer STRING) STORED AS PARQUET"),
    ("write", "INSERT INTO shop.orders VALUES (1, 'Ada'), (2, 'Bob')"),
    ("read", "SELECT id, customer FROM shop.orders ORDER BY id"),
    ("list databases", "SHOW DATABASES"),
)
DENIED: tuple[tuple[str, str], ...] = (
    ("create another database", "CREATE DATABASE payroll"),
    ("create a table elsewhere", "CREATE TABLE default.mine (id INT) STORED AS PARQUET"),
)


def run(report: Callable[[dict[str, Any]], None], uri: str, warehouse: str, more: dict[str, str]) -> None:
    """Runs all steps in order.

    Raises RuntimeError if a statement that should be denied is executed.

    :param report: called for each step with title, statement, seconds, rows and refusal.
    """
    started = time.perf_counter()
    spark = start_session(uri, warehouse, more)

    def done(step: str, statement: str, rows: list[list[str]], refused: str) -> None:
        seconds = time.perf_counter() - started
        report({"step": step, "statement": statement, "seconds": seconds, "rows": rows, "refused": refused})

    done("start Spark", "", [], "")
    for step, statement in ALLOWED:
        started = time.perf_counter()
        done(step, statement, [[str(value) for value in row] for row in spark.sql(statement).collect()], "")
    for step, statement in DENIED:
        started = time.perf_counter()
        try:
            spark.sql(statement).collect()
        except Exception as error:
            lines = [line.strip() for line in str(error).splitlines()]
            text = next((line[line.index("Permission denied") :] for line in lines if "Permission denied" in line), "")
            if not text:
                raise
            done(step, statement, [], text.rstrip(")"))  # the end of Java's "MetaException(message:…)"
        else:
            raise RuntimeError(f"not refused: {statement}")
    spark.stop()


if __name__ == "__main__":
    URI, WAREHOUSE, PRINCIPAL, KEYTAB, SERVICE, KERBEROS = sys.argv[1:]
    run(
        lambda step: print(json.dumps(step), flush=True),
        URI,
        WAREHOUSE,
        {
            "spark.kerberos.principal": PRINCIPAL,
            "spark.kerberos.keytab": KEYTAB,
            "spark.hadoop.hive.metastore.sasl.enabled": "true",
            "spark.hadoop.hive.metastore.kerberos.principal": SERVICE,
            "spark.hadoop.hadoop.rpc.protection": "privacy",
            "spark.driver.extraJavaOptions": f"-Djava.security.krb5.conf={KERBEROS}",
        },
    )
