"""Lines of stdin as records, as Kafka's LineMessageReader has them, by the same properties."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping
from itertools import combinations

from kafka_client.records import Headers, NewRecord
from millstream.commands.produce.pipe import Pipe
from millstream.commands.produce.source import STDIN, Chunk
from millstream.commands.produce.splitter import Splitter
from millstream.data_types.data_type import WrongData
from millstream.kafka_tools.java.java_errors import COMMON, JavaError

_SEPARATORS = {
    "headers.delimiter": "\t",
    "headers.separator": ",",
    "headers.key.separator": ":",
}
"""Separators with their defaults. No two may be the same."""
_UNLIKE_NULL = ("key.separator", "headers.separator", "headers.delimiter", "headers.key.separator")


class LineReader:
    """A parser of lines `headers⇥key⇥value`. Properties set the parts of a line and the separators."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        settings = {**_SEPARATORS, "key.separator": "\t", **properties}
        _check(settings)
        self._parse_key = _is_true(settings, "parse.key")
        self._parse_headers = _is_true(settings, "parse.headers")
        self._ignore = _is_true(settings, "ignore.error")
        self._key_separator = settings["key.separator"].encode()
        self._headers_delimiter = settings["headers.delimiter"].encode()
        self._headers_separator = re.compile(settings["headers.separator"].encode())
        self._header_separator = settings["headers.key.separator"].encode()
        null = settings.get("null.marker")
        self._null = None if null is None else null.encode()

    def record(self, line: bytes, number: int, now_ms: int) -> NewRecord:
        """Return the record of a line. Raises WrongData, with Java's message, if a part is missing."""
        if not (self._parse_key or self._parse_headers):
            return now_ms, None, self._value(line), ()
        text, rest = self._cut(
            self._parse_headers, line, line, number, self._headers_delimiter, "headers delimiter"
        )
        key, value = self._cut(self._parse_key, rest, line, number, self._key_separator, "key separator")
        headers = () if text is None or text == self._null else self._headers(text, number)
        return now_ms, None if key is None else self._value(key), self._value(value), headers

    def _value(self, text: bytes) -> bytes | None:
        return None if text == self._null else text

    def _cut(
        self, enabled: bool, text: bytes, line: bytes, number: int, separator: bytes, name: str
    ) -> tuple[bytes | None, bytes]:
        """Return the text before the separator, None if there is none, and the rest of the line."""
        if not enabled:
            return None, text
        before, mark, behind = text.partition(separator)
        if mark:
            return before, behind
        if self._ignore:
            return None, text
        raise WrongData(f"No {name} found on line number {number}: '{_shown(line)}'")

    def _headers(self, text: bytes, number: int) -> Headers:
        pairs = self._headers_separator.split(text)
        while len(pairs) > 1 and not pairs[-1]:
            pairs.pop()
        return tuple(self._header(pair, number) for pair in pairs)

    def _header(self, pair: bytes, number: int) -> tuple[str, bytes | None]:
        name, mark, value = pair.partition(self._header_separator)
        if not mark:
            if self._ignore:
                return _shown(pair), None
            raise WrongData(f"No header key separator found in pair '{_shown(pair)}' on line number {number}")
        if name == self._null:
            raise WrongData(
                f"Header keys should not be equal to the null marker '{_shown(name)}' as they can't be null"
            )
        return _shown(name), self._value(value)


class StdinSource:
    """Chunks of stdin's lines, with a prompt for each read where somebody types them.

    Iterate in a thread: it waits for input. `stop` ends the iteration from another one.
    """

    def __init__(self, reader: LineReader) -> None:
        self._reader = reader
        self._pipe = Pipe(STDIN)
        self._number = 0
        self._prompts = sys.stdin.isatty() and sys.stdout.isatty()

    @property
    def total(self) -> int | None:
        """The number of records to come, for the progress bar; None, as it is unknown: no bar is shown."""
        return None

    def stop(self) -> None:
        """End the iteration, even while it waits for input."""
        self._pipe.stop()

    def __iter__(self) -> Iterator[Chunk]:
        splitter = Splitter(b"\n")
        try:
            while data := self._read():
                if lines := splitter.feed(data):
                    yield (chunk := self._chunk(lines))
                    if chunk.error is not None:
                        return
            if lines := splitter.finish():
                yield self._chunk(lines)
        finally:
            self._pipe.close()

    def _read(self) -> bytes:
        if self._prompts:
            print(">", end="", flush=True)
        return self._pipe.read()

    def _chunk(self, lines: list[bytes]) -> Chunk:
        """Return the records up to the first invalid line. A carriage return ends a line, too."""
        now_ms, first, longest = time.time_ns() // 1_000_000, self._number + 1, 0
        records: list[NewRecord] = []
        try:
            for line in lines:
                for part in line.removesuffix(b"\r").split(b"\r"):
                    self._number += 1
                    longest = max(longest, len(part))
                    records.append(self._reader.record(part, self._number, now_ms))
        except WrongData as error:
            return Chunk("stdin", first, records, 0, longest, str(error))
        return Chunk("stdin", first, records, 0, longest)


def _check(settings: Mapping[str, str]) -> None:
    """Raise KafkaException if two separators, or a separator and the null marker, are equal."""
    for one, other in combinations(_SEPARATORS, 2):
        if settings[one] == settings[other]:
            raise _kafka_error(f"{one} and {other} may not be equal")
    for name in _UNLIKE_NULL:
        if settings[name] == settings.get("null.marker"):
            raise _kafka_error(f"null.marker and {name} may not be equal")


def _kafka_error(message: str) -> JavaError:
    return JavaError(f"{COMMON}.KafkaException", message)


def _is_true(settings: Mapping[str, str], key: str) -> bool:
    return settings.get(key, "").strip().lower() == "true"


def _shown(text: bytes) -> str:
    return text.decode("utf-8", "replace")
