"""A password, key or token that is not shown in logs and errors."""

from __future__ import annotations

HIDDEN = "[hidden]"


class Secret:
    """A secret text. Printing, logging and formatting show `[hidden]`; `reveal` returns the text."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text itself."""
        return self._text

    def __repr__(self) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)
