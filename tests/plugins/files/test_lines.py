"""Lines taken many at once are the lines that iterating gives, and the positions are the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.files.lines import EndOfFile, Lines

ENCODINGS = ("utf-8", "UTF8", "latin-1", "ascii", "utf-8-sig", "utf-7", "iso2022_jp")
TEXTS = (
    "",
    "one",
    "one\n",
    "\n",
    "\n\n\nlast",
    "one\r\ntwo\r\r\n\r\nthree\r",
    "a line\x0bof\x0cmany\x1cseparators\x85\nand another\n",
    "zwölf\n日本\n".encode().decode("latin-1"),
)


def iterated(path: Path, encoding: str, *, tail: bool) -> Iterator[tuple[str, int, int]]:
    lines = Lines(path, encoding, tail=tail)
    try:
        for text in lines:
            yield text.rstrip("\r\n"), lines.position, lines.line
    except EndOfFile:
        pass
    finally:
        lines.close()


@pytest.mark.parametrize("tail", [False, True])
@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("text", TEXTS)
def test_taking_gives_what_iterating_gives(
    tmp_path: Path, text: str, encoding: str, size: int, tail: bool
) -> None:
    path = tmp_path / "file"
    try:
        path.write_bytes(text.encode(encoding))
    except UnicodeEncodeError:
        path.write_bytes(text.encode("ascii", "ignore"))
    expected = list(iterated(path, encoding, tail=tail))
    lines = Lines(path, encoding, tail=tail)
    texts = []
    while chunk := lines.take(size):
        texts += chunk
        assert (lines.position, lines.line) == expected[len(texts) - 1][1:]
    assert texts == [each for each, _, _ in expected]
    lines.close()


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes("\ufeffone\n\ufefftwo\n".encode())
    lines = Lines(path, "UTF-8", tail=False)
    assert lines.take(10) == ["one", "\ufefftwo"]
    assert lines.position == path.stat().st_size
    lines.close()


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "iso2022_jp"])
def test_what_cannot_be_decoded_leaves_the_position_before_its_line(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\ntwo\n\xff\nfour\n")
    lines = Lines(path, encoding, tail=False)
    with pytest.raises(UnicodeDecodeError):
        lines.take(10)
    assert (lines.position, lines.line) == (8, 2)
    lines.close()
