"""Python source under construction: lines that know which field they are for.

Generated encoders and decoders check nothing twice and carry no field names at run time: when one
fails, the line it failed on says which field it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Source:
    """A function's source being written, with the constants it uses."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._labels: list[str] = []
        self._depth = 0
        self._names = 0
        self.constants: dict[str, Any] = {}

    def line(self, text: str, label: str = "") -> None:
        """Add one line; `label` is the path of the field it serves."""
        self._lines.append(" " * self._depth + text)
        self._labels.append(label)

    @contextmanager
    def block(self, text: str, label: str = "") -> Iterator[None]:
        """Add a line that ends in a colon and indent what is added inside."""
        self.line(text, label)
        self._depth += 1
        yield
        self._depth -= 1

    def name(self, stem: str) -> str:
        """Return an unused variable name."""
        self._names += 1
        return f"{stem}{self._names}"

    def constant(self, value: Any, stem: str = "C") -> str:
        """Return the name of `value` inside the function."""
        for name, constant in self.constants.items():
            if constant is value:
                return name
        name = self.name(stem)
        self.constants[name] = value
        return name

    def compile(self, function: str, title: str) -> tuple[Callable[..., Any], list[str]]:
        """Return the function of that name, and the label of every line (the first line is number 1)."""
        namespace = dict(self.constants)
        exec(compile("\n".join(self._lines), f"<{title}>", "exec"), namespace)
        compiled: Callable[..., Any] = namespace[function]
        return compiled, ["", *self._labels]

    def __str__(self) -> str:
        return "\n".join(self._lines)
