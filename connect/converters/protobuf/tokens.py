"""Tokens of .proto text: names, numbers, strings and signs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from connect.errors import DataError

TEXT_MAX = 4 << 20
"""The most characters of a .proto file."""
_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<number>0[xX][0-9A-Fa-f]+|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<sign>[{}\[\]()<>;:,=.+/-])""",
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """A token; `kind` is name, number, string, sign or end."""

    kind: str
    text: str
    begin: int


def _tokens(text: str) -> Iterator[Token]:
    begin = 0
    while begin < len(text):
        match = _TOKEN.match(text, begin)
        if match is None:
            raise DataError(f"line {_line(text, begin)} of the .proto text: {text[begin]!r} begins no token")
        if match.lastgroup != "space":
            yield Token(match.lastgroup or "", match.group(), begin)
        begin = match.end()


def _line(text: str, begin: int) -> int:
    return text.count("\n", 0, begin) + 1


class Tokens:
    """The tokens of a text, with a position. Raises DataError for what is no .proto text."""

    def __init__(self, text: str) -> None:
        if len(text) > TEXT_MAX:
            raise DataError(f"the .proto text has {len(text)} characters, more than {TEXT_MAX}")
        self._text = text
        self._rest = _tokens(text)
        self.token = Token("", "", 0)
        """The token at the position."""
        self._move()

    def _move(self) -> None:
        self.token = next(self._rest, Token("end", "", len(self._text)))

    def next(self) -> Token:
        """Return the token at the position, and go on to the next. Raises DataError at the end."""
        token = self.token
        if token.kind == "end":
            self.fail("more")
        self._move()
        return token

    def accept(self, text: str) -> bool:
        """Return True, and go on, if the token is this name or sign."""
        if self.token.text != text or self.token.kind not in ("name", "sign"):
            return False
        self._move()
        return True

    def expect(self, text: str) -> None:
        """Go on from a name or sign. Raises DataError if the token is another one."""
        if not self.accept(text):
            self.fail(repr(text))

    def name(self) -> str:
        """Return the name at the position. Raises DataError if the token is none."""
        if self.token.kind != "name":
            self.fail("a name")
        return self.next().text

    def full_name(self) -> str:
        """Return a name with dots, which may begin with one."""
        parts = "." if self.accept(".") else ""
        parts += self.name()
        while self.accept("."):
            parts += "." + self.name()
        return parts

    def integer(self) -> int:
        """Return a whole number, which may be negative, hexadecimal or octal."""
        sign = -1 if self.accept("-") else 1
        text = self.token.text
        if self.token.kind != "number":
            self.fail("a whole number")
        octal = len(text) > 1 and text[0] == "0" and text.isdigit()
        try:
            number = int(text, 8 if octal else 0)
        except ValueError:
            self.fail("a whole number")
        self.next()
        return sign * number

    def string(self) -> str:
        """Return the text of one or several strings in a row, with its escapes as they are."""
        if self.token.kind != "string":
            self.fail("a string")
        parts = []
        while self.token.kind == "string":
            parts.append(self.next().text[1:-1])
        return "".join(parts)

    def constant(self) -> str:
        """Return an option's value in Protobuf's text format; one in braces without its braces."""
        if self.token.text == "{":
            return self._block()
        if self.token.kind == "string":
            parts = [self.next().text]
            while self.token.kind == "string":
                parts.append(self.next().text)
            return " ".join(parts)
        sign = "-" if self.accept("-") else ""
        if not sign:
            self.accept("+")
        return sign + (self.full_name() if self.token.kind == "name" else self.next().text)

    def _block(self) -> str:
        parts: list[str] = []
        depth = 0
        while True:
            token = self.next()
            depth += (token.text in ("{", "[", "<")) - (token.text in ("}", "]", ">"))
            parts.append(token.text)
            if depth == 0:
                return " ".join(parts[1:-1])

    def skip_statement(self) -> None:
        """Go on behind the next semicolon, or behind a block in braces if one comes first."""
        depth = 0
        while True:
            token = self.next()
            if token.kind != "sign":
                continue
            depth += (token.text == "{") - (token.text == "}")
            if depth == 0 and token.text in (";", "}"):
                return

    def fail(self, expected: str) -> NoReturn:
        """Raise DataError, which says what was expected, and where."""
        place = self.token.text or "the end"
        line = _line(self._text, self.token.begin)
        raise DataError(f"line {line} of the .proto text: {expected} is expected, not {place}")
