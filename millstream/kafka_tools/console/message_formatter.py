"""Records as Kafka's formatters print them: DefaultMessageFormatter with its properties, and the others.

The timestamp type is a flag of the batch: `TimestampTypes` keeps it from fetch to print.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from kafka_client import Fetched, TopicPartition
from kafka_client.errors import UnreadableBatch
from kafka_client.records import Record
from millstream.commands.consume.columns import HEADERS, KEY, OFFSET, TIMESTAMP, VALUE, RecordPrinter
from millstream.kafka_tools.console.deserializers import Deserializer, find_deserializer
from millstream.kafka_tools.log import log_error

PACKAGE = "org.apache.kafka.tools.consumer."
DEFAULT = f"{PACKAGE}DefaultMessageFormatter"
OLD = {
    "kafka.tools.DefaultMessageFormatter": DEFAULT,
    "kafka.tools.LoggingMessageFormatter": f"{PACKAGE}LoggingMessageFormatter",
    "kafka.tools.NoOpMessageFormatter": f"{PACKAGE}NoOpMessageFormatter",
    "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter": (
        f"{PACKAGE}OffsetsMessageFormatter"
    ),
    "kafka.coordinator.group.GroupMetadataManager$GroupMetadataMessageFormatter": (
        f"{PACKAGE}GroupMetadataMessageFormatter"
    ),
    "kafka.coordinator.transaction.TransactionLog$TransactionLogMessageFormatter": (
        f"{PACKAGE}TransactionLogMessageFormatter"
    ),
}
"""Former names of formatters, and their current names."""

Column = Callable[[TopicPartition, Record], bytes]

_LOG_APPEND_TIME: Final = 0x08


class TimestampTypes:
    """Offsets of records whose timestamp is the broker's append time, not the producer's."""

    def __init__(self) -> None:
        self._appended: dict[TopicPartition, list[range]] = {}

    def note(self, batches: Iterable[Fetched]) -> None:
        """Remember the timestamp types of these batches. Earlier batches have been printed."""
        self._appended = {
            fetched.tp: [
                range(header.base_offset, header.next_offset)
                for header, _ in fetched.batches(on_unreadable=_told_by_its_reader)
                if header.attributes & _LOG_APPEND_TIME
            ]
            for fetched in batches
        }

    def name(self, tp: TopicPartition, offset: int) -> bytes:
        """Return Java's name of the timestamp type."""
        appended = any(offset in offsets for offsets in self._appended.get(tp, ()))
        return b"LogAppendTime" if appended else b"CreateTime"


def _told_by_its_reader(unreadable: UnreadableBatch) -> None:
    pass


def find_formatter(name: str, properties: Mapping[str, str], types: TimestampTypes) -> RecordPrinter | None:
    """Return the formatter of that Java class, or None."""
    if name in (DEFAULT, f"{PACKAGE}LoggingMessageFormatter"):
        return default_formatter(properties, types)
    if name == f"{PACKAGE}NoOpMessageFormatter":
        return lambda tp, records: b""
    # Imported for those topics only: it brings all their records' forms along.
    from millstream.data_types.internal import internal_reader

    try:
        read = internal_reader(name) if name.startswith(PACKAGE) else None
    except KeyError:
        return None
    if read is None:
        return None

    def render(tp: TopicPartition, records: Sequence[Record]) -> bytes:
        # Kafka's end no line.
        return "".join(read(record[KEY], record[VALUE]) or "" for record in records).encode()

    return render


def default_formatter(properties: Mapping[str, str], types: TimestampTypes) -> RecordPrinter:
    """Return a DefaultMessageFormatter with these properties."""
    columns = list(_columns(properties, types))
    between = properties.get("key.separator", "\t").encode()
    end = properties.get("line.separator", "\n").encode()

    def render(tp: TopicPartition, records: Sequence[Record]) -> bytes:
        return b"".join(between.join([column(tp, record) for column in columns]) + end for record in records)

    return render if columns else lambda tp, records: b""


def _columns(properties: Mapping[str, str], types: TimestampTypes) -> Iterable[Column]:
    """Yield the columns to print, in order."""

    def is_wanted(name: str, default: str = "false") -> bool:
        return properties.get(f"print.{name}", default).strip().lower() == "true"

    null = properties.get("null.literal", "null").encode()
    if is_wanted("timestamp"):
        yield lambda tp, record: b"%b:%d" % (types.name(tp, record[OFFSET]), record[TIMESTAMP])
    if is_wanted("partition"):
        yield lambda tp, record: b"Partition:%d" % tp.partition
    if is_wanted("offset"):
        yield lambda tp, record: b"Offset:%d" % record[OFFSET]
    # The console consumer hands neither on, whatever the record has.
    if is_wanted("delivery"):
        yield lambda tp, record: b"Delivery:NOT_PRESENT"
    if is_wanted("epoch"):
        yield lambda tp, record: b"Epoch:NOT_PRESENT"
    if is_wanted("headers"):
        yield _headers(properties, null)
    if is_wanted("key"):
        yield _content(KEY, _deserializer(properties, "key"), null)
    if is_wanted("value", "true"):
        yield _content(VALUE, _deserializer(properties, "value"), null)


def _content(place: int, read: Deserializer | None, null: bytes) -> Column:
    def column(tp: TopicPartition, record: Record) -> bytes:
        data = record[place]
        # As in Java, the null literal passes through the deserializer, too.
        data = null if data is None else data
        assert isinstance(data, bytes)
        return data if read is None else read(data)

    return column


def _headers(properties: Mapping[str, str], null: bytes) -> Column:
    between = properties.get("headers.separator", ",").encode()
    read = _deserializer(properties, "headers")

    def column(tp: TopicPartition, record: Record) -> bytes:
        headers = ((name, null if data is None else data) for name, data in record[HEADERS])
        shown = [b"%b:%b" % (name.encode(), data if read is None else read(data)) for name, data in headers]
        return between.join(shown) if shown else b"NO_HEADERS"

    return column


def _deserializer(properties: Mapping[str, str], what: str) -> Deserializer | None:
    name = properties.get(f"{what}.deserializer")
    if name is None:
        return None
    if (deserializer := find_deserializer(name)) is None:
        log_error(f"Unable to instantiate a deserializer from {name}: bytes are shown as they are")
    return deserializer
