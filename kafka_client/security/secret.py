"""A password, key or token that does not show itself."""

from __future__ import annotations

HIDDEN = "[hidden]"


class Secret:
    """A secret text. What prints, logs or formats it shows `[hidden]`; `reveal` gives the text."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def __repr__(self) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)
