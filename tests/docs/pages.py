"""The pages and the code blocks in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "docs", ROOT / "docs" / "decisions", ROOT / "docs" / "streams")
PAGES = [ROOT / "README.md", *(page for folder in FOLDERS for page in sorted(folder.glob("*.md")))]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NOT_RUN = re.compile(r"<!-- not run: .+ -->\n\Z")


@dataclass(frozen=True)
class Block:
    """A fenced block. `<!-- not run: why -->` on the line before it says that it only has to compile."""

    page: Path
    line: int
    language: str
    text: str
    is_run: bool

    @property
    def is_for_pytest(self) -> bool:
        """Whether its tests take Millstream's own fixtures, and so are run as another project's."""
        return re.search(r"^def test_\w+\(millstream", self.text, re.MULTILINE) is not None

    @property
    def place(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path, *languages: str) -> Iterator[Block]:
    """Yield the blocks of a page in these languages, in order."""
    text = page.read_text(encoding="utf-8")
    for fence in _FENCE.finditer(text):
        before = text[: fence.start()]
        if fence[1] in languages:
            yield Block(page, before.count("\n") + 2, fence[1], fence[2], not _NOT_RUN.search(before))


def all_blocks(*languages: str) -> list[Block]:
    """Return the blocks of all pages in these languages."""
    return [block for page in PAGES for block in blocks(page, *languages)]
