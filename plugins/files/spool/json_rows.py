"""Documents of a JSON file: the items of one array, or documents one after the other, read in pieces."""

from __future__ import annotations

import codecs
import json
import re
from typing import Any, BinaryIO, NoReturn

from connect.api import DataError, Schema
from plugins.files.spool.rows import Rows

_PIECE = 1 << 16
_DOCUMENT_MAX = 64 << 20
"""How many characters one document may have."""
_DELIMITERS = " \t\r\n,]"
_SPACE = re.compile(r"[ \t\r\n]*")


class JsonRows:
    """A reader of documents. `line` counts them: a later start reads and skips that many."""

    value_schema: Schema | None = None
    position = 0

    def __init__(self, file: BinaryIO, encoding: str, line: int) -> None:
        """Open it behind the first `line` documents."""
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8-sig" if _is_utf8(encoding) else encoding)().decode
        self._text = ""
        self._at = 0
        self._is_whole = False
        self._parse = json.JSONDecoder(parse_constant=_refuse).raw_decode
        self._is_array = self._next_character() == "["
        self._at += self._is_array
        self._is_over = False
        self.line = 0
        while self.line < line:
            if not self._skipped(line - self.line):
                raise DataError(f"has {self.line} documents, {line} were read before")

    def _skipped(self, count: int) -> bool:
        return bool(self.read(min(count, 1000)).values)

    def read(self, count: int) -> Rows:
        """Return the next documents, at most `count`. Raises DataError where the file is no JSON."""
        values: list[Any] = []
        first = self.line
        while len(values) < count and not self._is_over and self._has_next():
            values.append(self._document())
            self.line += 1
        return Rows(values, range(first + 1, self.line + 1), ended=len(values) < count)

    def _has_next(self) -> bool:
        """Go to the next document. Return False at the end."""
        character = self._next_character()
        if not self._is_array:
            self._is_over = not character
            return not self._is_over
        if character == "]":
            self._at += 1
            if self._next_character():
                self._complain("something follows the array")
            self._is_over = True
            return False
        if self.line:
            if character != ",":
                self._complain("a comma is missing" if character else "the file ends within the array")
            self._at += 1
            character = self._next_character()
        if not character:
            self._complain("the file ends within the array")
        return True

    def _document(self) -> Any:
        while True:
            try:
                value, end = self._parse(self._text, self._at)
            except RecursionError:
                self._complain("it is nested too deeply")
            except json.JSONDecodeError as e:
                # A number may be cut off anywhere, a text or object fails near its end.
                if not self._more(max(_PIECE, len(self._text))):
                    self._complain(e.msg)
                continue
            if self._is_complete(value, end) or not self._more(_PIECE):
                self._at = end
                return value

    def _is_complete(self, value: Any, end: int) -> bool:
        """Return True unless the value may go on behind the text that was read, as a number may."""
        if not isinstance(value, (int, float)):
            return True
        return end < len(self._text) and self._text[end] in _DELIMITERS

    def _next_character(self) -> str:
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more(_PIECE):
                return ""

    def _more(self, size: int) -> bool:
        """Read on. Return False at the end of the file."""
        if self._is_whole:
            return False
        if self._at:
            self._text, self._at = self._text[self._at :], 0
        if len(self._text) > _DOCUMENT_MAX:
            self._complain(f"a document has more than {_DOCUMENT_MAX >> 20} Mi characters")
        raw = self._file.read(size)
        self._is_whole = not raw
        self._text += self._decode(raw, self._is_whole)
        return True

    def _complain(self, what: str) -> NoReturn:
        raise DataError(f"behind document {self.line}: no JSON, {what}")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name == "utf-8"


def _refuse(constant: str) -> NoReturn:
    raise DataError(f"{constant} is no JSON")
