"""A record of a dead letter queue, with what its context headers say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connect.runtime.errors.failed_row import DESCRIBED, ERROR_PREFIX
from kafka_client import TopicPartition
from kafka_client.records import Headers, NewRecord, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A dead letter of our worker's or of Kafka Connect's."""

    tp: TopicPartition
    """The partition of the dead letter queue."""
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    """The headers that the record had before it failed."""
    context: Mapping[str, str]
    """The context headers by their names without prefix; empty if they were not enabled."""

    @classmethod
    def of(cls, tp: TopicPartition, record: Record) -> DeadLetter:
        """Return the dead letter for a record of the queue."""
        offset, timestamp, key, value, headers = record
        return cls(
            tp=tp,
            offset=offset,
            timestamp=timestamp,
            key=key,
            value=value,
            headers=tuple(header for header in headers if not header[0].startswith(ERROR_PREFIX)),
            context={
                name.removeprefix(ERROR_PREFIX): (data or b"").decode("utf-8", "replace")
                for name, data in headers
                if name.startswith(ERROR_PREFIX)
            },
        )

    @property
    def origin(self) -> str | None:
        """The topic that the record was read from, or that a source wrote it for; None if nobody knows."""
        return self.context.get("topic") or self.context.get("source.topic") or None

    @property
    def partition(self) -> int | None:
        """The partition of `origin` that the record was read from, or None."""
        text = self.context.get("partition", "")
        return int(text) if text.isdecimal() else None

    @property
    def is_described(self) -> bool:
        """True for a source's record that never had bytes: the value is a description of it."""
        return self.context.get("format") == DESCRIBED

    @property
    def reason(self) -> tuple[str, str, str]:
        """Connector, stage and class of the exception; "" for each that is not known."""
        context = self.context
        return (
            context.get("connector.name", ""),
            context.get("stage", ""),
            context.get("exception.class.name", ""),
        )

    def as_written(self) -> NewRecord:
        """Return the record without its context, as it was before it failed."""
        return self.timestamp, self.key, self.value, self.headers

    def shown(self) -> dict[str, Any]:
        """Return the letter as a JSON document; bytes are shown as text, what is no UTF-8 escaped."""
        return {
            "partition": self.tp.partition,
            "offset": self.offset,
            "timestamp": self.timestamp,
            "key": _text(self.key),
            "value": _text(self.value),
            "headers": {name: _text(data) for name, data in self.headers},
            "errors": dict(self.context),
        }


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "backslashreplace")
