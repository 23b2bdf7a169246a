"""The cost of consumers with many partitions: a poll in a fetch session, and Metadata, by their number.

    python -m benchmarks.sessions [--bootstrap-server HOST:PORT] [--partitions N,N] [--runs N]

Figures are CPU microseconds of the broker per request. A session has all partitions of a topic. Polls do
not wait, except the last kind, in which a produced record ends the wait. With more active partitions than
`millstream.open.files.max`, the figures show the opening of their files.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

from benchmarks import raw
from benchmarks.broker import Broker, arguments, broker_for
from benchmarks.cpu import cpu_seconds
from benchmarks.report import Report
from kafka_client.records import build_batch
from kafka_client.wire.fetched import decode_fetch_response
from kafka_client.wire.framing import LENGTH, encode_request
from kafka_client.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafka_client.wire.produce import encode_produce_request

VERSION = 12
HEAD = 5
"""Correlation id and the header's tagged fields."""
SECONDS = 0.5
"""CPU of the broker that a run takes at least: the kernel accounts in steps of 10 ms."""
QUIET_SECONDS = 0.02
"""CPU in a second of a broker that does nothing."""
STEP = 4
"""Requests between two looks at the broker's CPU time."""
PARTITIONS_PER_PRODUCE = 1_000
RECORD = build_batch([(1_700_000_000_000, None, b"v" * 100, ())])


class Session:
    """A session over all partitions of a topic, on a connection of its own."""

    def __init__(self, connection: socket.socket, topic: str, offsets: list[int]) -> None:
        self._connection = connection
        self._drain = raw.Drain(connection, 1 << 26)
        self._id = self._epoch = 0
        partitions = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
            for index, offset in enumerate(offsets)
        ]
        self.poll(FetchTopic(topic=topic, partitions=partitions))
        self.poll()

    def send(self, *topics: FetchTopic, max_wait_ms: int = 0) -> None:
        """Send a Fetch request of the session, with these partitions changed."""
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=1 << 26,
            session_id=self._id,
            session_epoch=self._epoch,
            topics=list(topics),
        )
        self._connection.sendall(encode_request(request, VERSION, 1, "bench"))
        self._epoch += 1

    def receive(self) -> int:
        """Read the response. Return the number of partitions in it."""
        (length,) = LENGTH.unpack(self._drain.exactly(4))
        answer = decode_fetch_response(self._drain.exactly(length), VERSION, HEAD)
        assert answer.error_code == 0
        self._id = answer.session_id
        return sum(len(partitions) for _, partitions in answer.topics)

    def poll(self, *topics: FetchTopic) -> int:
        """Send a Fetch request and read its response. Return the number of partitions in it."""
        self.send(*topics)
        return self.receive()


def microseconds(broker: Broker, work: Callable[[], object]) -> float:
    """Return the broker's CPU time for one call of ``work``, in µs."""
    calls, before = 0, cpu_seconds(broker.pid)
    while (used := cpu_seconds(broker.pid) - before) < SECONDS:
        for _ in range(STEP):
            work()
        calls += STEP
    return used / calls * 1e6


def wait_until_quiet(broker: Broker) -> None:
    """Wait until the broker has nothing left to flush in the background."""
    while True:
        before = cpu_seconds(broker.pid)
        time.sleep(1)
        if cpu_seconds(broker.pid) - before <= QUIET_SECONDS:
            return


def fill(broker: Broker, topic: str, partitions: int) -> None:
    """Write one record to each partition."""
    with raw.connect(broker.host, broker.port) as connection:
        drain = raw.Drain(connection)
        for start in range(0, partitions, PARTITIONS_PER_PRODUCE):
            some = range(start, min(partitions, start + PARTITIONS_PER_PRODUCE))
            records = [(topic, [(index, RECORD) for index in some])]
            connection.sendall(b"".join(encode_produce_request(records, 7, 1, "bench", acks=1)))
            drain.frame()


def metadata(broker: Broker, topic: str) -> Callable[[], int]:
    """Return a function that requests the topic's metadata."""
    connection = raw.connect(broker.host, broker.port)
    drain = raw.Drain(connection, 1 << 24)
    frame = encode_request(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), VERSION, 1, "bench")

    def ask() -> int:
        connection.sendall(frame)
        return drain.frame()

    return ask


def woken(broker: Broker, session: Session, topic: str, offset: int) -> Callable[[], None]:
    """Return a function that polls, and produces a record to one partition, which ends the wait."""
    connection = raw.connect(broker.host, broker.port)
    drain = raw.Drain(connection)
    frame = b"".join(encode_produce_request([(topic, [(0, RECORD)])], 7, 1, "bench", acks=1))

    def poll() -> None:
        nonlocal offset
        moved = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        session.send(FetchTopic(topic=topic, partitions=[moved]), max_wait_ms=10_000)
        connection.sendall(frame)
        drain.frame()
        assert session.receive() == 1
        offset += 1

    return poll


def measure(broker: Broker, partitions: int) -> dict[str, float]:
    """Run each kind once. Return the figures by the kind's name."""
    topic = f"bench-sessions-{partitions}"
    if not raw.create_topic(broker.bootstrap, topic, partitions):
        fill(broker, topic, partitions)
    wait_until_quiet(broker)
    ends = raw.topic_ends(broker.bootstrap, topic)
    figures = {"Metadata": microseconds(broker, metadata(broker, topic))}
    for kind, offsets in (
        ("poll, idle", ends),
        ("poll, one active", [ends[0] - 1, *ends[1:]]),
        ("poll, all active", [end - 1 for end in ends]),
    ):
        with raw.connect(broker.host, broker.port) as connection:
            session = Session(connection, topic, offsets)
            figures[kind] = microseconds(broker, session.poll)
    with raw.connect(broker.host, broker.port) as connection:
        poll = woken(broker, Session(connection, topic, ends), topic, ends[0])
        figures["poll that a record ends, and producing it"] = microseconds(broker, poll)
    return figures


def main() -> None:
    """Run the benchmark."""
    parser = arguments(__doc__ or "")
    parser.add_argument(
        "--partitions", default="1,100,1000,10000", help="how many there are, one after another"
    )
    options = parser.parse_args()
    counts = [int(count) for count in options.partitions.split(",")]
    report = Report("consumers of many partitions: CPU of the broker, µs per request")
    with broker_for(options) as broker:
        for count in counts:
            runs = [measure(broker, count) for _ in range(options.runs + 1)][1:]
            for kind in runs[0]:
                report.add(f"{count:,} partitions: {kind}", [run[kind] for run in runs])
    report.show()


if __name__ == "__main__":
    main()
