"""Site files as Hadoop's parser reads them: parts as attributes, and files that include others."""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_cache.config import load
from hms_cache.errors import ConfigurationError

_XI = 'xmlns:xi="http://www.w3.org/2001/XInclude"'


def write(path: Path, content: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"<configuration {_XI}>{content}</configuration>", encoding="utf-8")
    return path


def of(name: str, value: str, more: str = "") -> str:
    return f"<property><name>{name}</name><value>{value}</value>{more}</property>"


def site(path: Path, *others: Path) -> dict[str, str]:
    return dict(load(site_files=[path, *others], environment={}).site)


def test_a_property_may_have_its_parts_as_attributes(tmp_path: Path) -> None:
    first = write(tmp_path / "a.xml", '<property name="a" value="1" final="true"/><property name="b" value="1"/>')
    second = write(tmp_path / "b.xml", of("a", "2") + '<property name="b"><value>2</value></property>')
    assert site(first, second) == {"a": "1", "b": "2"}


def test_protection_that_is_asked_for_by_attributes_is_not_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path / "a.xml", '<property name="metastore.filter.hook" value="a.B"/>')
    with pytest.raises(ConfigurationError, match=r"metastore\.filter\.hook"):
        site(path)


@pytest.mark.parametrize("element", ["xi:include", "include"])
def test_an_included_file_stands_in_its_place(tmp_path: Path, element: str) -> None:
    inner = write(tmp_path / "conf" / "inner.xml", of("b", "inner") + of("c", "inner", "<final>true</final>"))
    write(tmp_path / "conf" / "middle.xml", f'<{element} href="inner.xml"/>')
    outer = write(
        tmp_path / "outer.xml",
        of("a", "outer") + of("b", "outer") + f'<{element} href="conf/middle.xml"/>' + of("c", "outer"),
    )
    assert site(outer) == {"a": "outer", "b": "inner", "c": "inner"}
    absolute = write(tmp_path / "absolute.xml", f'<{element} href="{inner}"/>')
    assert site(absolute) == {"b": "inner", "c": "inner"}


def test_a_setting_tells_in_which_of_the_files_it_is(tmp_path: Path) -> None:
    inner = write(tmp_path / "inner.xml", of("metastore.thrift.port", "9103"))
    outer = write(tmp_path / "outer.xml", '<xi:include href="inner.xml"/>')
    configuration = load(site_files=[outer], environment={})
    assert configuration.settings.server.port == 9103
    assert configuration.origin("server.port") == f"{inner} (metastore.thrift.port)"


def test_the_fallback_stands_for_a_file_that_is_not_there(tmp_path: Path) -> None:
    fallback = f"<xi:fallback>{of('a', 'instead')}</xi:fallback>"
    outer = write(tmp_path / "outer.xml", f'<xi:include href="inner.xml">{fallback}</xi:include>')
    assert site(outer) == {"a": "instead"}
    write(tmp_path / "inner.xml", of("a", "there"))
    assert site(outer) == {"a": "there"}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('<xi:include href="absent.xml"/>', "outer.xml: includes .*absent.xml, which does not exist"),
        ('<xi:include href="outer.xml"/>', "outer.xml: includes itself"),
        ('<xi:include href="../conf/loop.xml"/>', "outer.xml: includes itself"),
    ],
)
def test_an_include_that_cannot_be_read_stops_the_start(tmp_path: Path, content: str, why: str) -> None:
    write(tmp_path / "conf" / "loop.xml", '<xi:include href="outer.xml"/>')
    with pytest.raises(ConfigurationError, match=why):
        site(write(tmp_path / "conf" / "outer.xml", content))


@pytest.mark.parametrize("encoding", ["GBK", "no-such-encoding", "utf-16"])
def test_a_file_whose_encoding_cannot_be_read_is_told(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.xml"
    path.write_bytes(f'<?xml version="1.0" encoding="{encoding}"?><configuration/>'.encode())
    with pytest.raises(ConfigurationError, match=r"a\.xml: is not XML"):
        site(path)
