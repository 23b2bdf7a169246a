r"""Random texts that match a simple regular expression, such as `User_[1-9]\d{0,3}`.

Literals, `.`, classes `[a-z_]`, `\d`, `\w`, groups with alternatives `(a|b)`, and the quantifiers `?`, `*`,
`+`, `{n}` and `{m,n}`. `*` and `+` repeat at most eight times.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from random import Random

Maker = Callable[[Random], str]
"""A function that makes a random text."""

_REPEATS_MAX = 8
"""How often `*` and `+` repeat at most."""
_COUNT_MAX = 1000
"""The largest number in braces."""
_CLASSES = {
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "_",
    "s": " ",
}
_ANY = string.ascii_letters + string.digits


def text_maker(pattern: str) -> Maker:
    """Return the function that makes texts of `pattern`. Raises ValueError if the pattern is not valid."""
    parser = _Parser(pattern)
    maker = parser.alternatives()
    if parser.rest:
        raise ValueError(f"regex {pattern!r} has {parser.rest!r} without its opening")
    return maker


class _Parser:
    """A reader of one pattern, from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._place = 0

    @property
    def rest(self) -> str:
        return self._pattern[self._place :]

    def alternatives(self) -> Maker:
        """Return the maker of `a|b|c`."""
        choices = [self._sequence()]
        while self._take("|"):
            choices.append(self._sequence())
        return choices[0] if len(choices) == 1 else lambda random: random.choice(choices)(random)

    def _sequence(self) -> Maker:
        parts: list[Maker] = []
        while self.rest and self.rest[0] not in "|)":
            parts.append(self._quantified(self._atom()))
        return lambda random: "".join([part(random) for part in parts])

    def _atom(self) -> Maker:
        character = self._next()
        if character == "(":
            if self._take("?"):
                self._expect(":")
            maker = self.alternatives()
            self._expect(")")
            return maker
        if character == "[":
            return _one_of(self._members())
        if character == "\\":
            escaped = self._next()
            return _one_of(_CLASSES.get(escaped, escaped))
        if character in "*+?{":
            raise ValueError(f"regex {self._pattern!r} has {character!r} after nothing")
        return _one_of(_ANY if character == "." else character)

    def _members(self) -> str:
        """Return the characters of a class; its opening bracket is read already."""
        members = ""
        if self._take("^"):
            raise ValueError(f"regex {self._pattern!r}: a class of all other characters is not supported")
        while not self._take("]"):
            first = self._next()
            if first == "\\":
                escaped = self._next()
                members += _CLASSES.get(escaped, escaped)
            elif self.rest[:1] == "-" and self.rest[1:2] not in ("]", ""):
                self._place += 1
                last = self._next()
                if last < first:
                    raise ValueError(f"regex {self._pattern!r} has the empty range {first}-{last}")
                members += "".join(map(chr, range(ord(first), ord(last) + 1)))
            else:
                members += first
        if not members:
            raise ValueError(f"regex {self._pattern!r} has an empty class")
        return members

    def _quantified(self, maker: Maker) -> Maker:
        if self._take("?"):
            low, high = 0, 1
        elif self._take("*"):
            low, high = 0, _REPEATS_MAX
        elif self._take("+"):
            low, high = 1, _REPEATS_MAX
        elif self._take("{"):
            low, high = self._counts()
        else:
            return maker
        return lambda random: "".join([maker(random) for _ in range(random.randint(low, high))])

    def _counts(self) -> tuple[int, int]:
        """Return the bounds of `{m}` or `{m,n}`; the opening brace is read already."""
        inside, brace, rest = self.rest.partition("}")
        low, comma, high = inside.partition(",")
        try:
            bounds = int(low), int(high if comma else low)
        except ValueError:
            raise ValueError(f"regex {self._pattern!r}: {{{inside}}} must be {{n}} or {{m,n}}") from None
        if not brace or not 0 <= bounds[0] <= bounds[1] <= _COUNT_MAX:
            raise ValueError(f"regex {self._pattern!r}: {{{inside}}} must rise, up to {_COUNT_MAX}")
        self._place = len(self._pattern) - len(rest)
        return bounds

    def _next(self) -> str:
        if not self.rest:
            raise ValueError(f"regex {self._pattern!r} ends too early")
        self._place += 1
        return self._pattern[self._place - 1]

    def _take(self, character: str) -> bool:
        """Return True and go on if `character` comes next."""
        if self.rest[:1] == character:
            self._place += 1
            return True
        return False

    def _expect(self, character: str) -> None:
        if not self._take(character):
            raise ValueError(f"regex {self._pattern!r} lacks {character!r}")


def _one_of(characters: str) -> Maker:
    if len(characters) == 1:
        return lambda random: characters
    return lambda random: random.choice(characters)
