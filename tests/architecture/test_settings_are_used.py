"""A setting that nothing reads would be a promise to operators that nobody keeps."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from pydantic import SecretStr

from hms_cache.config.setting import facts_of
from hms_cache.config.settings import Settings, all_settings, section_types

PACKAGE = Path(__file__).parents[2] / "hms_cache"

#: Read by the loader itself, which `tests/config/test_sources.py` tries for each.
BY_THE_LOADER = {
    f"{reference.name}_{source}"
    for reference in all_settings()
    if reference.field.annotation is SecretStr
    for source in ("file", "command")
}
#: Parts of the database's URL, which its section puts together.
BY_ITS_SECTION = {
    *("database.username", "database.password"),
    *("database.tls_enabled", "database.tls_ca_file", "database.tls_ca_password"),
}
#: Told to clients that ask for the configuration under Hive's names, and acted upon by those.
BY_CLIENTS = {"catalog.batch_retrieve_max", "catalog.batch_retrieve_table_partition_max"}
#: Annotated in the body of a dataclass: fields, though they look like variables.
FIELDS_OF_DATACLASSES = {"settings", "options", *Settings.model_fields}


def test_every_setting_is_read_by_a_part_of_the_program() -> None:
    """Read from its own section: an attribute of the same name elsewhere is something else."""
    reads = read_settings()
    unread = {
        reference.name
        for reference in all_settings()
        if reference.name not in BY_THE_LOADER | BY_CLIENTS | BY_ITS_SECTION | reads
    }
    assert not unread


def test_a_read_of_another_section_does_not_count() -> None:
    """A setting's name in two sections, one of which nothing reads: the one read is no excuse for the other."""
    source = """
def a(settings: TransactionSettings, other: Options) -> None:
    kept = settings
    kept.timeout_s
    other.max_open
    input_limits().lock_components
"""
    reads = SettingReads([ast.parse(source)]).names()
    assert reads == {"transactions.timeout_s", "limits.lock_components"}


class SettingReads:
    """Which settings some modules read, found by the sections that their names hold.

    A parameter, a variable or a field holds the section of its annotation, or of what it is assigned. Names of
    variables are a module's own; names of fields are looked up over all modules.
    """

    def __init__(self, modules: Sequence[ast.Module]) -> None:
        self._modules = modules
        self._classes = {section.__name__: name for name, section in section_types().items()}
        self._fields: dict[str, set[str]] = {}
        self._names: dict[str, set[str]] = {}

    def names(self) -> set[str]:
        """`section.key` of each."""
        nodes = [list(ast.walk(module)) for module in self._modules]
        for _ in range(2):  # a field may be assigned in a module that comes later
            for module in nodes:
                self._note_all(module)
        found: set[str] = set()
        for module in nodes:
            self._note_all(module)
            for node in module:
                if isinstance(node, ast.Attribute):
                    found |= {f"{section}.{node.attr}" for section in self._sections_of(node.value)}
        return found

    def _note_all(self, module: list[ast.AST]) -> None:
        self._names = {}
        for node in module * 2:  # parents come first: an assignment before the parameters of its function
            if isinstance(node, ast.arg) and node.annotation is not None:
                self._note(ast.Name(node.arg), self._named_in(node.annotation))
            elif isinstance(node, ast.AnnAssign):
                self._note(node.target, self._named_in(node.annotation))
            elif isinstance(node, ast.FunctionDef) and node.returns is not None:
                self._note(ast.Attribute(ast.Name("self"), node.name), self._named_in(node.returns))
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    self._note_assigned(target, node.value)

    def _note_assigned(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, its_value in zip(target.elts, value.elts, strict=False):
                self._note(one, self._sections_of(its_value))
        else:
            self._note(target, self._sections_of(value))

    def _note(self, target: ast.expr, sections: set[str]) -> None:
        if not sections:
            return
        if isinstance(target, ast.Attribute):
            self._fields.setdefault(target.attr.lstrip("_"), set()).update(sections)
        elif isinstance(target, ast.Name):
            self._names.setdefault(target.id, set()).update(sections)
            if target.id in FIELDS_OF_DATACLASSES:
                self._fields.setdefault(target.id, set()).update(sections)

    def _named_in(self, annotation: ast.expr) -> set[str]:
        names = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
        return {self._classes[name] for name in names & self._classes.keys()}

    def _sections_of(self, value: ast.expr) -> set[str]:
        match value:
            case ast.Call(ast.Name("input_limits")):
                return {"limits"}
            case ast.Call(function):
                return self._sections_of(function)
            case ast.Name(name):
                return self._names.get(name, set())
            case ast.Attribute(ast.Name(holder) | ast.Attribute(_, holder), section) if (
                section in Settings.model_fields and holder.lstrip("_") in ("settings", "given")
            ):
                return {section}
            case ast.Attribute(_, name):
                return self._fields.get(name.lstrip("_"), set())
            case _:
                return set()


def read_settings() -> set[str]:
    """`section.key` of every setting that a module outside of config/ reads."""
    sources = [
        path.read_text(encoding="utf-8")
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] not in ("config", "thrift_gen")
    ]
    keys = {reference.key for reference in all_settings()}
    modules = [
        ast.parse(source)
        for source in sources
        if "ettings" in source or not keys.isdisjoint(re.findall(r"\.(\w+)", source))
    ]
    return SettingReads(modules).names() | {
        f"{section}.{key}"
        for source in sources
        for section in re.findall(r"settings\.(\w+)\.model_dump\(\)", source)  # all of it goes to a part
        for key in section_types()[section].model_fields
    }


def test_what_only_clients_read_has_a_name_they_know() -> None:
    for reference in all_settings():
        if reference.name in BY_CLIENTS:
            assert facts_of(reference.field).site_keys
