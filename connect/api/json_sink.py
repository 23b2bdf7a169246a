"""Sinks that take records as JSON texts, without an object per record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from connect.api.calls import MaybeAwaitable
from connect.api.records import Header
from connect.api.sink import SinkTask
from kafka_client import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonBatch:
    """Consecutive records of one partition, as columns of equal length.

    `topic` is that of the records, which a transform may have changed; `source` is where they were read.
    `timestamps`: ms since the epoch. `keys` and `values`: JSON texts in UTF-8 without line ends, None for
    null. `headers`: those of each record; None if no record has any.
    """

    topic: str
    source: TopicPartition
    offsets: Sequence[int]
    timestamps: Sequence[int]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[Sequence[Header]] | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    def slice(self, start: int, stop: int) -> JsonBatch:
        """Return the records from index `start` up to, but not including, `stop`."""
        if (start, stop) == (0, len(self)):
            return self
        return JsonBatch(
            topic=self.topic,
            source=self.source,
            offsets=self.offsets[start:stop],
            timestamps=self.timestamps[start:stop],
            keys=self.keys[start:stop],
            values=self.values[start:stop],
            headers=None if self.headers is None else self.headers[start:stop],
        )


class JsonSinkTask(SinkTask):
    """Writes JSON texts to the target: subclass it and override `put_json` in place of `put`.

    All else is as in a `SinkTask`. Without transforms, texts that the JSON converter reads without schemas
    are those of the log, byte for byte. Other values are written as JSON: bytes as base64, decimals as
    numbers. A record that cannot be converted is left out alone, as `errors.tolerance` says.
    """

    @property
    def takes_json(self) -> bool:
        """True if the worker is to call `put_json` rather than `put`; asked after `start`."""
        return True

    def put_json(self, batches: Sequence[JsonBatch]) -> MaybeAwaitable[None]:
        """Take records, in offset order per partition; see `SinkTask.put`.

        One batch, unless transforms have sent the records to several topics. Bounds are `max.poll.records`
        and `put.max.bytes` of keys and values.
        """
        raise NotImplementedError
