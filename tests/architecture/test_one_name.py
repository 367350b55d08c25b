"""A table's name has one class."""

from __future__ import annotations

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "hms_cache"
#: The normalized name of a table, made by the handlers of what a request says.
FORMS = {"metadata/object_names.py": "TableName"}


def classes_of_table_names() -> dict[str, str]:
    """Module -> class, of the classes whose fields are a catalog, a database and a table, all given."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "thrift_gen" in path.parts or not re.search(r"\bcatalog\s*:\s*str\b", text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                fields = [ast.unparse(item) for item in node.body if isinstance(item, ast.AnnAssign)]
                if fields == ["catalog: str", "database: str", "table: str"]:
                    found[str(path.relative_to(PACKAGE))] = node.name
    return found


def test_a_name_of_a_table_has_one_form() -> None:
    assert classes_of_table_names() == FORMS
