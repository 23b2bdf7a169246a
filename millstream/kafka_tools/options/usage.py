"""The table of options that `--help` prints, in joptsimple's two columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from millstream.kafka_tools.options.option import Option

WIDTH = 80
GAP = 2


def usage(options: Sequence[Option]) -> str:
    """Return the table of options by name, each with its value and its help."""
    left = {option: _left(option) for option in sorted(options, key=lambda option: option.names)}
    column = min(max(map(len, left.values()), default=0), (WIDTH - GAP) // 2)
    lines = [f"{'Option':<{column}}  Description", f"{'-' * 6:<{column}}  {'-' * 11}"]
    for option, text in left.items():
        lines += _row(text, option.help, column)
    return "\n".join(lines)


def _left(option: Option) -> str:
    shown = ", ".join(f"--{name}" if len(name) > 1 else f"-{name}" for name in option.names)
    if option.value is None:
        return shown
    return f"{shown} [{option.value}]" if option.optional else f"{shown} <{option.value}>"


def _row(left: str, right: str, column: int) -> Iterator[str]:
    lefts = textwrap.wrap(left, column, subsequent_indent="  ")
    rights = textwrap.wrap(right, WIDTH - GAP - column, subsequent_indent="  ")
    for at in range(max(len(lefts), len(rights))):
        first = lefts[at] if at < len(lefts) else ""
        second = rights[at] if at < len(rights) else ""
        yield f"{first:<{column}}  {second}".rstrip()
