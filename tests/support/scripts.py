"""Scripts for a core under test: commands, each followed by `----`, what came out, and an empty line.

`#` begins a comment. `REWRITE=1` in the environment writes what came out into the script: read the
difference before you believe it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

Run = Callable[[str], list[str]]
"""Carries out a command and gives the lines that came out."""

_UNITS = (("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000))


def check_script(path: Path, run: Run) -> None:
    """Carry out a script, and compare or, with REWRITE=1, write down."""
    written: list[str] = []
    for comments, command, expected in paragraphs(path.read_text()):
        result = run(command) if command else []
        if not os.environ.get("REWRITE"):
            assert result == expected, f"{path.name}: {command}"
        written.append("\n".join([*comments, *([command, "----", *result] if command else [])]))
    if os.environ.get("REWRITE"):
        path.write_text("\n\n".join(written) + "\n")


def paragraphs(text: str) -> Iterator[tuple[list[str], str, list[str]]]:
    """Comment lines, the command, the lines expected; a paragraph of comments alone has no command."""
    for paragraph in text.strip().split("\n\n"):
        lines = paragraph.splitlines()
        comments = [line for line in lines if line.startswith("#")]
        rest = [line for line in lines if not line.startswith("#")]
        yield (comments, rest[0], rest[2:]) if rest else (comments, "", [])


def milliseconds(text: str) -> int:
    """Return the milliseconds of a time such as `10s` or `5m`; a number without a unit is milliseconds."""
    for unit, factor in _UNITS:
        if text.endswith(unit):
            return int(text.removesuffix(unit)) * factor
    return int(text)
