"""The way of polled records to the producer: through the transforms, then through the converters."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from connect.api.records import SourceBatch, SourceRecord
from connect.errors import DataError
from connect.runtime.conversion import Conversion
from connect.runtime.errors.failed_row import FailedRow, failed_source_row
from connect.runtime.errors.stages import Stage, StageError, class_name
from connect.runtime.plugin_results import check_polled
from connect.runtime.sink_rows import transform_error
from connect.runtime.task_rate import sizes
from connect.transforms.chain import TransformChain, TransformError
from kafka_client.records import NewRecord


@dataclass(slots=True)
class TopicRows:
    """Records of one topic, behind the transforms, with their bytes in the same order."""

    records: Sequence[SourceRecord]
    converted: list[NewRecord]
    polled: list[int] | None = None
    """The index of each record's polled record, if single records are followed."""


@dataclass(slots=True)
class Polled:
    """The records of one `poll`, prepared for the producer."""

    records: Sequence[SourceRecord] = ()
    topics: Mapping[str, TopicRows] = field(default_factory=dict)
    bad: list[FailedRow] = field(default_factory=list)
    """Records that are left out: rows that the plugin has reported, and records that fail."""
    is_failed: bool = False
    """True if a record fails: the batch has to be prepared row by row."""
    polled_at: float = 0.0
    """Monotonic seconds at which `poll` returned."""

    @property
    def count(self) -> int:
        """The number of polled records."""
        return len(self.records)

    def sizes(self) -> Iterator[int]:
        """Yield the bytes of each converted record's key and value."""
        return sizes(chain.from_iterable(rows.converted for rows in self.topics.values()), 1)

    def __bool__(self) -> bool:
        return bool(self.records or self.bad)


_Row = tuple[SourceRecord, NewRecord]


class SourceRows:
    """The transforms and converters of one source task; `is_followed` if it takes single acknowledgements."""

    def __init__(
        self,
        conversion: Conversion,
        transforms: TransformChain,
        *,
        is_followed: bool,
        reported: list[tuple[SourceRecord, BaseException]] | None = None,
    ) -> None:
        """Create the way. Each poll takes the rows that the plugin has reported out of `reported`."""
        self._conversion = conversion
        self._transforms = transforms
        self._is_followed = is_followed
        self._reported = [] if reported is None else reported

    def prepared(self, records: Sequence[SourceRecord] | None) -> Polled:
        """Return polled records, prepared for the producer; for the task's thread.

        Raises TypeError or ValueError for what `poll` must not return.
        """
        check_polled(records)
        polled = Polled(records or (), polled_at=time.monotonic())
        if self._reported:
            polled.bad = [failed_source_row(row, _poll_error(row, error)) for row, error in self._reported]
            self._reported.clear()
        if polled.records:
            try:
                polled.topics = self._batch(polled.records)
            except Exception:
                polled.is_failed = True
        return polled

    def row(self, record: SourceRecord) -> list[_Row]:
        """Return the records that one polled record becomes, with their bytes. Raises StageError."""
        transformed = [record]
        if not self._transforms.is_empty:
            try:
                transformed = self._transforms.apply([record])
            except TransformError as e:
                raise transform_error(e) from e
        return [(each, self._converted(each)) for each in transformed]

    def topics(self, rows: Iterable[tuple[int, Sequence[_Row]]]) -> Mapping[str, TopicRows]:
        """Return rows by topic, in order; each is the index of a polled record and what it has become."""
        lists: defaultdict[str, tuple[list[SourceRecord], list[NewRecord], list[int]]]
        lists = defaultdict(lambda: ([], [], []))
        for index, pairs in rows:
            for record, converted in pairs:
                records, conversions, polled = lists[record.topic]
                records.append(record)
                conversions.append(converted)
                polled.append(index)
        return {topic: TopicRows(*columns) for topic, columns in lists.items()}

    def _batch(self, records: Sequence[SourceRecord]) -> Mapping[str, TopicRows]:
        if self._is_followed and not self._transforms.is_empty:
            return self.topics((index, self.row(record)) for index, record in enumerate(records))
        if not self._transforms.is_empty:
            records = self._transforms.apply(records)
        topics: dict[str, TopicRows] = {}
        for topic, part in _by_topic(records).items():
            _check_topic(topic)
            topics[topic] = TopicRows(part, self._conversion.to_log(topic, part))
        if self._is_followed:
            positions: defaultdict[str, list[int]] = defaultdict(list)
            for index, record in enumerate(records):
                positions[record.topic].append(index)
            for topic, rows in topics.items():
                rows.polled = positions[topic]
        return topics

    def _converted(self, record: SourceRecord) -> NewRecord:
        try:
            _check_topic(record.topic)
        except DataError as e:
            raise StageError(Stage.KAFKA_PRODUCE, "topic", class_name(self), e) from e
        return self._conversion.one_to_log(record)


def _poll_error(row: SourceRecord, error: BaseException) -> StageError:
    return StageError(Stage.TASK_POLL, "row", class_name(error), error)


def _check_topic(topic: str) -> None:
    if not topic:
        raise DataError("a record has no topic")


def _by_topic(records: Sequence[SourceRecord]) -> Mapping[str, Sequence[SourceRecord]]:
    if isinstance(records, SourceBatch):
        return {records.topic: records}
    if not records:
        return {}
    first = records[0].topic
    if all(record.topic == first for record in records):
        return {first: records}
    topics: dict[str, list[SourceRecord]] = defaultdict(list)
    for record in records:
        topics[record.topic].append(record)
    return topics
