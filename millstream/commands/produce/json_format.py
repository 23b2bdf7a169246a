"""JSON lines as records, in the form in which `millstream consume -o jsonl` prints them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from kafka_client.records import Headers, NewRecord
from millstream.data_types.data_type import DataType, WrongData


class _JsonRecord(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A line. Its topic, partition and offset say where the record was read, and are ignored."""

    value: Any
    key: Any = None
    headers: list[tuple[str, Any]] | dict[str, Any] = []
    timestamp: int | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None


_DECODER = msgspec.json.Decoder(_JsonRecord)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonFormat:
    """`{"value": …, "key": …, "headers": [["name", …]], "timestamp": ms}`; headers may be an object, too.

    `value` is required; null is a tombstone. `key` and `headers` are the defaults for records without them.
    """

    key_type: DataType
    value_type: DataType
    header_type: DataType
    key: bytes | None = None
    headers: Headers = ()

    def __call__(self, lines: Sequence[bytes], now_ms: int) -> list[NewRecord]:
        """Return the records of these lines. Raises WrongData if a line is malformed."""
        try:
            records = _DECODER.decode_lines(b"\n".join(lines))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise WrongData(str(error)) from None
        if len(records) != len(lines):
            raise WrongData("an empty line, or more than one object in a line")
        encode_key, encode_value = self.key_type.encode, self.value_type.encode
        return [
            (
                now_ms if one.timestamp is None else one.timestamp,
                self.key if one.key is None else encode_key(one.key),
                None if one.value is None else encode_value(one.value),
                self._headers(one.headers) if one.headers else self.headers,
            )
            for one in records
        ]

    def _headers(self, headers: list[tuple[str, Any]] | dict[str, Any]) -> Headers:
        encode = self.header_type.encode
        pairs = headers.items() if isinstance(headers, dict) else headers
        return tuple((name, None if value is None else encode(value)) for name, value in pairs)
