"""The documents for the tests: headings, sections, code, links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: Written by hand. Generated ones are compared with the code by their generators' own tests.
GENERATED = {"configuration.md", "metrics.md"}

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text."""

    language: str
    text: str


@dataclass(frozen=True)
class Page:
    """One document."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def prose(self) -> str:
        """Without fenced blocks."""
        return _FENCE.sub("", self.text)

    @property
    def blocks(self) -> list[Block]:
        return [Block(*found) for found in _FENCE.findall(self.text)]

    @property
    def headings(self) -> list[str]:
        return re.findall(r"^#+ (.+)$", self.prose, re.MULTILINE)

    @property
    def anchors(self) -> set[str]:
        """As GitHub generates them from headings."""
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in self.headings}

    @property
    def spans(self) -> list[str]:
        """What stands between single backticks."""
        return re.findall(r"`([^`\n]+)`", self.prose)

    def section(self, heading: str) -> str:
        """Returns the text below a heading, up to the next one of its level or above."""
        found = re.search(rf"^(#+) {re.escape(heading)}\n", self.text, re.MULTILINE)
        assert found is not None, f"{self.name} has no heading {heading!r}"
        rest = self.text[found.end() :]
        end = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.MULTILINE)
        return rest[: end.start()] if end else rest

    def first_column(self, heading: str) -> list[str]:
        """Returns the code spans in the first cells of the table's rows below a heading."""
        rows = re.findall(r"^\| (`[^|]+) \|", self.section(heading), re.MULTILINE)
        return [span for row in rows for span in re.findall(r"`([^`]+)`", row)]

    def links(self) -> Iterator[tuple[str, str]]:
        """Returns (file or nothing, anchor or nothing) of each link to a document of this project."""
        for target in re.findall(r"\]\(([^)\s]+)\)", self.prose):
            if "://" not in target:
                file, _, anchor = target.partition("#")
                yield file, anchor


def pages() -> list[Page]:
    """The README and everything in docs/."""
    return [Page(ROOT / "README.md"), *(Page(path) for path in sorted(DOCS.rglob("*.md")))]


def page(name: str) -> Page:
    """One of docs/."""
    return Page(DOCS / name)
