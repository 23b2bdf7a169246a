"""Lines as records: each line is a value, optionally with headers and a key before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kafka_client.records import Headers, NewRecord
from millstream.data_types.data_type import DataType, WrongData


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFormat:
    """`headers⇥key:value`, as in Kafka's console producer; headers are `name:value,name:value`.

    `key_separator`, `headers_separator`: None if lines have no such part. `null`: the text of null (None:
    there is none). `key`: the default for lines without a key; `headers`: added to every record.
    """

    key_type: DataType
    value_type: DataType
    header_type: DataType
    key_separator: bytes | None = None
    headers_separator: bytes | None = None
    null: bytes | None = None
    key: bytes | None = None
    headers: Headers = ()

    def __call__(self, lines: Sequence[bytes], now_ms: int) -> list[NewRecord]:
        """Return the records of these lines. Raises WrongData if a line is malformed."""
        parse_value = self._parser(self.value_type, "the value")
        if self.headers_separator is not None:
            return [self._whole(line, now_ms) for line in lines]
        headers, separator, constant = self.headers, self.key_separator, self.key
        if separator is None:
            if parse_value is None:
                return [(now_ms, constant, line, headers) for line in lines]
            return [(now_ms, constant, parse_value(line), headers) for line in lines]
        parse_key = self._parser(self.key_type, "the key")
        parts = [line.split(separator, 1) for line in lines]
        if any(len(part) < 2 for part in parts):
            raise WrongData(f"no key separator {separator.decode('utf-8', 'replace')!r} in it")
        return [
            (
                now_ms,
                parse_key(key) if parse_key else key,
                parse_value(value) if parse_value else value,
                headers,
            )
            for key, value in parts
        ]

    def _whole(self, line: bytes, now_ms: int) -> NewRecord:
        """Return the record of a line with headers."""
        assert self.headers_separator is not None
        text, match, rest = line.partition(self.headers_separator)
        if not match:
            separator = self.headers_separator.decode("utf-8", "replace")
            raise WrongData(f"no headers separator {separator!r} in it")
        headers = self.headers
        if text and text != self.null:
            headers += tuple(self._header(part) for part in text.split(b","))
        plain = LineFormat(
            key_type=self.key_type,
            value_type=self.value_type,
            header_type=self.header_type,
            key_separator=self.key_separator,
            null=self.null,
            key=self.key,
            headers=headers,
        )
        return plain([rest], now_ms)[0]

    def _header(self, text: bytes) -> tuple[str, bytes | None]:
        name, colon, value = text.partition(b":")
        if not colon:
            raise WrongData(f"no ':' in the header {text.decode('utf-8', 'replace')!r}")
        return parse_header(name, value, self.header_type, self.null)

    def _parser(self, kind: DataType, what: str) -> Callable[[bytes], bytes | None] | None:
        """Return a function that parses the text of a field, or None if the bytes stay as they are."""
        null, parse = self.null, kind.parse
        if parse is None:
            return None if null is None else lambda text: None if text == null else text

        def parsed(text: bytes) -> bytes | None:
            try:
                return None if text == null else parse(text)
            except WrongData as error:
                raise WrongData(f"{what}: {error}") from None

        return parsed


def parse_header(
    name: bytes, value: bytes, kind: DataType, null: bytes | None = None
) -> tuple[str, bytes | None]:
    """Return the name and value of a header. Raises WrongData if one is malformed."""
    try:
        parsed = None if value == null else kind.parse(value) if kind.parse else value
        return name.decode(), parsed
    except UnicodeDecodeError:
        raise WrongData(f"the name of a header is not UTF-8: {name!r}") from None
    except WrongData as error:
        raise WrongData(f"header {name.decode('utf-8', 'replace')}: {error}") from None
