"""Effects of a broker's settings that clients and the disk show: each method measures one setting's effect
alone.
"""

from __future__ import annotations

import itertools
import os
import re
import select
import signal
import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

from kafka_client.records import Codec, decode_records, iter_batches
from kafka_client.wire import encode_request
from kafka_client.wire.messages.api_versions import ApiVersionsRequest
from kafka_client.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafka_client.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka_client.wire.messages.delete_topics import DeleteTopicsRequest
from kafka_client.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.init_producer_id import InitProducerIdRequest
from kafka_client.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from logd.broker.coordinators.coordinator import partition_for
from logd.broker.topics.configs import Operation
from tests.logd.api.test_configs import TOPIC, alter
from tests.logd.api.test_configs import described as topic_config
from tests.logd.broker.log_dirs import alter as move
from tests.logd.broker.log_dirs import described, home
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.standing_still import stands_still
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

HOUR_MS = 3_600_000
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.bytes": "15000",
    "segment.index.bytes": "1000000",
    "retention.bytes": "-1",
}
_numbers = itertools.count()


def now_ms() -> int:
    return int(time.time() * 1000)


class Broker(NamedTuple):
    """A running broker with a client. Each public method measures one effect, after which it is named."""

    logd: LogdProcess
    client: RawClient

    def topic(self, configs: Mapping[str, str] | None = None) -> str:
        return create_topic(self.logd, f"t{next(_numbers)}", configs)

    def fill(self, topic: str, count: int, *, timestamp: int | None = None, size: int = 1000) -> None:
        for number in range(count):
            record = (timestamp or now_ms(), b"k%d" % number, b"x" * size, ())
            assert self.client.produce(topic, [record]).error_code == 0

    def folder(self, topic: str) -> Path:
        return self.logd.folder / home(self.logd.folder, f"{topic}-0") / f"{topic}-0"

    # Clients' requests

    def rack(self) -> str | None:
        rack: str | None = self.client.request(MetadataRequest(topics=[]), 12).brokers[0].rack
        return rack

    def deletion(self) -> int:
        """Delete a topic and return the error code."""
        request = DeleteTopicsRequest(topic_names=[self.topic()], timeout_ms=10_000)
        code: int = self.client.request(request, 4).responses[0].error_code
        return code

    def batches_fetched(self) -> int:
        """Return how many of ten batches of about 1,000 bytes one Fetch response has."""
        topic = self.topic()
        self.fill(topic, 10)
        return sum(1 for _ in iter_batches(self.client.fetch(topic).records))

    def partitions_by_default(self) -> int:
        """Return the partition count of a topic that is created without one."""
        name = f"t{next(_numbers)}"
        creation = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
        (created,) = self.client.request(CreateTopicsRequest(topics=[creation]), 7).topics
        assert created.error_code == 0
        return self._partitions_of(name)

    def _partitions_of(self, topic: str) -> int:
        (row,) = self.client.request(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 12).topics
        return len(row.partitions)

    def coordinated_partitions(self, topic: str) -> int:
        """Return the partition count of a coordinator's topic."""
        self._coordinate()
        return self._partitions_of(topic)

    def coordinated_config(self, topic: str, key: str) -> str | None:
        """Return a config of a coordinator's topic."""
        self._coordinate()
        value: str | None = topic_config(self.client, TOPIC, topic, key).value
        return value

    def _coordinate(self) -> None:
        """Have both coordinators' topics created."""
        for key_type in (0, 1):
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["any"])
            self.client.request(request, 6)

    def offsets_codec(self) -> Codec:
        """Return the codec of a batch with a group's offset."""
        group = self._committed("")
        partition = partition_for(group, self._partitions_of("__consumer_offsets"))
        records = self.client.fetch("__consumer_offsets", partition=partition).records
        return next(header.codec for _, header in iter_batches(records))

    def joined(self, session_timeout_ms: int) -> int:
        """Join a group with this session timeout and return the error code."""
        group = f"g{next(_numbers)}"
        self.client.request(FindCoordinatorRequest(coordinator_keys=[group]), 6)
        code: int = self.client.request(_join(group, session_timeout_ms=session_timeout_ms), 3).error_code
        return code

    def second_member(self) -> int:
        """Join a group as its second member and return the error code."""
        group = f"g{next(_numbers)}"
        with RawClient(self.logd.port) as second:
            for client in (self.client, second):
                client.request(FindCoordinatorRequest(coordinator_keys=[group]), 6)
            first = self.client.request(_join(group), 3)
            assert first.error_code == 0
            second.send(encode_request(_join(group), 3, 7, "raw"))
            while not _has_input(second):  # a rebalance waits for the first to join again
                self.client.request(_join(group, first.member_id), 3)
            code: int = second.receive(JoinGroupRequest.API_KEY, 3).error_code
            return code

    def long_metadata(self) -> int:
        """Commit an offset with 11 letters of metadata and return the error code."""
        return self._commit(f"g{next(_numbers)}", "hello world")

    def _committed(self, metadata: str) -> str:
        """Return a new group with a committed offset."""
        group = f"g{next(_numbers)}"
        assert self._commit(group, metadata) == 0
        return group

    def _commit(self, group: str, metadata: str) -> int:
        self.client.request(FindCoordinatorRequest(coordinator_keys=[group]), 6)
        partition = OffsetCommitRequestPartition(committed_offset=1, committed_metadata=metadata)
        topic = OffsetCommitRequestTopic(name=self.topic(), partitions=[partition])
        answer = self.client.request(OffsetCommitRequest(group_id=group, topics=[topic]), 8)
        code: int = answer.topics[0].partitions[0].error_code
        return code

    def long_transaction(self) -> int:
        """Ask for transactions of 20,001 ms and return the error code."""
        name = f"x{next(_numbers)}"
        self.client.request(FindCoordinatorRequest(key_type=1, coordinator_keys=[name]), 6)
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=20_001)
        code: int = self.client.request(request, 4).error_code
        return code

    def appended(self, timestamp: int, configs: Mapping[str, str] | None = None) -> tuple[int, bool]:
        """Produce a record of this time; return the error code and whether the broker set its timestamp."""
        answer = self.client.produce(self.topic(configs), [(timestamp, b"k", b"v", ())])
        return answer.error_code, answer.log_append_time_ms >= 0

    def served(self) -> int:
        """Return how many of 24 more connections are answered, once the broker has closed them."""
        served = self._served(24)
        wait_for(lambda: self._served(18) == 18)
        return served

    def _served(self, count: int) -> int:
        with ExitStack() as stack:
            raws = [stack.enter_context(RawClient(self.logd.port)) for _ in range(count)]
            return sum(_is_answered(raw) for raw in raws)

    def taken_unaccepted(self) -> int:
        """Return how many of 24 connections the kernel accepts while the broker is stopped by SIGSTOP."""
        with RawClient(self.logd.port) as last:
            last.request(MetadataRequest(topics=[]), 12)  # those before it are accepted, then
        os.kill(self.logd.pid, signal.SIGSTOP)
        with ExitStack() as stack:
            stack.callback(os.kill, self.logd.pid, signal.SIGCONT)
            wait_for(lambda: stands_still(self.logd.pid))
            socks = [stack.enter_context(socket.socket()) for _ in range(24)]
            for sock in socks:
                sock.setblocking(False)
                sock.connect_ex(("127.0.0.1", self.logd.port))  # here done at once, or not before it goes on
            return len(select.select([], socks, [])[1])

    def taken_unread(self) -> int:
        """Return the bytes of a request that the kernel accepts while the broker is stopped by SIGSTOP."""
        os.kill(self.logd.pid, signal.SIGSTOP)
        try:
            with _small_socket(self.logd.port) as sock:
                sock.setblocking(False)
                sent = sock.send(b"\x05\0\0\0")
                while select.select([], [sock], [], 1.0)[1]:
                    sent += sock.send(bytes(1 << 16))
                return sent
        finally:
            os.kill(self.logd.pid, signal.SIGCONT)

    def given_unread(self) -> int:
        """Return the bytes of a response that the kernel takes from the broker while its client reads
        nothing.
        """
        topic = self.topic({"retention.bytes": "-1"})  # one of the brokers would delete the first at once
        for _ in range(2):
            self.fill(topic, 1, size=900_000)
        with _small_socket(self.logd.port) as sock:
            topic_row = FetchTopic(topic=topic, partitions=[FetchPartition(partition_max_bytes=1 << 21)])
            request = FetchRequest(min_bytes=1, max_bytes=1 << 21, topics=[topic_row])
            sock.sendall(encode_request(request, 12, 7, "raw"))
            port = sock.getsockname()[1]
            wait_for(lambda: _send_queue(self.logd.port, port) > 0)
            for _ in range(20):  # it has written what there is room for
                assert _is_answered(self.client)
            return _send_queue(self.logd.port, port)

    # Segments

    def segments(self, span_ms: int, **configs: str) -> int:
        """Return the number of segments for two records that are `span_ms` apart."""
        names = {key.replace("_", "."): value for key, value in configs.items()}
        topic = self.topic({"message.timestamp.type": "CreateTime", **names})
        start = now_ms() - 9 * HOUR_MS
        for timestamp in (start, start + span_ms):
            self.fill(topic, 1, timestamp=timestamp)
        return self._segments_of(topic)

    def index_segments(self) -> int:
        """Return the number of segments for ten batches, each with an index entry of its own."""
        topic = self.topic({"index.interval.bytes": "100"})
        self.fill(topic, 10)
        return self._segments_of(topic)

    def _segments_of(self, topic: str) -> int:
        folder = self.folder(topic)
        wait_for(lambda: any(folder.glob("*.log")))
        return len(list(folder.glob("*.log")))

    def disk_bytes(self) -> int:
        """Return the bytes that a segment with one record takes on the disk."""
        topic = self.topic()
        self.fill(topic, 1)
        folder = self.folder(topic)
        wait_for(lambda: any(folder.glob("*.log")))
        (segment,) = folder.glob("*.log")
        return segment.stat().st_blocks * 512

    def is_cut_by_size(self) -> bool:
        """Return True if retention cut a topic of 20,000 bytes by the time it cut a control topic."""
        topic, control = (
            self.topic({"segment.bytes": "5000"}),
            self.topic({"segment.bytes": "5000", "retention.bytes": "5000"}),
        )
        for each in (topic, control):
            self.fill(each, 20)
        wait_for(lambda: self._start_of(control) > 0)
        return self._start_of(topic) > 0

    def _start_of(self, topic: str) -> int:
        start: int = self.client.fetch(topic, 20, max_wait_ms=1).log_start_offset
        return start

    def start_is_noted(self) -> bool:
        """Wait until the log start offset is in its checkpoint."""
        topic = self.topic()
        self.fill(topic, 10)
        partition = DeleteRecordsPartition(partition_index=0, offset=7)
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[partition])])
        assert self.client.request(request, 2).topics[0].partitions[0].error_code == 0
        checkpoint = self.folder(topic).parent / "log-start-offset-checkpoint"
        wait_for(lambda: checkpoint.exists() and f"{topic} 0 7" in checkpoint.read_text())
        return True

    def moving_at_once(self) -> int:
        """Return how many of two partitions are copied at once, when both move too slowly to arrive."""
        topics = [self.topic(), self.topic()]
        for topic in topics:
            self.fill(topic, 3)
            target = next(name for name in ("a", "b") if name != home(self.logd.folder, f"{topic}-0"))
            assert move(self.client, self.logd.folder / target, topic, 0) == [0]
        wait_for(lambda: self._copied(topics) > 0)
        return max(self._copied(topics) for _ in range(50))

    def _copied(self, topics: list[str]) -> int:
        return sum(
            row.is_future_key and row.partition_size > 0
            for result in described(self.client).values()
            for topic in result.topics
            if topic.name in topics
            for row in topic.partitions
        )

    # The cleaner

    def keeps_tombstones(self) -> bool:
        """Return True if a tombstone is still in the log after four rounds of compaction."""
        topic = self.topic(COMPACTED)
        self.client.produce(topic, [(now_ms(), b"dead", None, ())])
        for count in range(1, 5):
            self.fill(topic, 40)
            wait_for(lambda count=count: self.rounds(topic) >= count)  # type: ignore[misc]
        return b"dead" in self._keys(topic)

    def rounds_for_many_keys(self, keys: int = 9_000) -> int:
        """Return the rounds of compaction for a log with so many thousands of keys."""
        topic = self.topic({**COMPACTED, "cleanup.policy": "delete", "min.compaction.lag.ms": "0"})
        for start in range(0, keys + 1_000, 1_000):
            records: list[Any] = [(now_ms(), b"%d" % key, b"v", ()) for key in range(start, start + 1_000)]
            assert self.client.produce(topic, records).error_code == 0
        self._compact(topic, keys + 1_000)
        wait_for(lambda: self._compacted_to(topic) == keys)
        return self.rounds(topic)

    def is_compacted_when_young(self) -> bool:
        """Return True if a topic was compacted by the time a control topic, with records as young, was
        compacted twice.
        """
        topic, control = self.topic(COMPACTED), self.topic({**COMPACTED, "min.compaction.lag.ms": "0"})
        self.fill(topic, 40)
        for count in (1, 2):  # by then the first has been the dirtier one
            self.fill(control, 40)
            wait_for(lambda count=count: self.rounds(control) >= count)  # type: ignore[misc]
        return self.rounds(topic) > 0

    def is_compacted_when_hardly_dirty(self) -> bool:
        """Wait until a log is compacted of which a third is dirty."""
        topic = self.topic({key: COMPACTED[key] for key in COMPACTED if key != "min.cleanable.dirty.ratio"})
        self.fill(topic, 40)
        wait_for(lambda: self.rounds(topic) > 0)
        self.fill(topic, 20)
        wait_for(lambda: self._compacted_to(topic) > 40)
        return True

    def is_compacted_in_time(self) -> bool:
        """Wait until a log that is not dirty enough is compacted because of its records' age."""
        topic = self.topic(COMPACTED)
        self.fill(topic, 40, timestamp=now_ms() - HOUR_MS)
        wait_for(lambda: self.rounds(topic) > 0)
        alter(self.client, TOPIC, topic, ("min.cleanable.dirty.ratio", Operation.SET, "1"))
        self.fill(topic, 40, timestamp=now_ms() - HOUR_MS)
        wait_for(lambda: self._compacted_to(topic) > 40)
        return True

    def _compacted_to(self, topic: str) -> int:
        offsets = re.findall(rf"compacted {topic}-0 up to offset (\d+)", self.logd.log)
        return int(offsets[-1]) if offsets else 0

    def cleaner_writes(self) -> int:
        """Return the number of writes for the compaction of 400 KB."""
        topic = self.topic({**COMPACTED, "segment.bytes": "400000", "cleanup.policy": "delete"})
        self.fill(topic, 500)
        before = sum(_writes(pid) for pid in self.cleaners())
        self._compact(topic, 500)
        wait_for(lambda: self.rounds(topic) > 0)
        return sum(_writes(pid) for pid in self.cleaners()) - before

    def cleaners_at_once(self) -> int:
        """Return the number of cleaner processes after the compaction of two logs."""
        topics = [self.topic({**COMPACTED, "cleanup.policy": "delete"}) for _ in range(2)]
        for topic in topics:
            self.fill(topic, 100)
        for topic in topics:
            self._compact(topic, 100)
        wait_for(lambda: all(self.rounds(topic) for topic in topics))
        return len(self.cleaners())

    def cleaning_seconds(self) -> float:
        """Return how many seconds the compaction of 100 KB takes."""
        topic = self.topic({**COMPACTED, "cleanup.policy": "delete"})
        self.fill(topic, 100)
        began = time.monotonic()
        self._compact(topic, 100)
        wait_for(lambda: self.rounds(topic) > 0)
        return time.monotonic() - began

    def _compact(self, topic: str, end: int) -> None:
        """Compact a log to its end; records that are not flushed yet are not compacted."""
        checkpoint = self.folder(topic).parent / "recovery-point-offset-checkpoint"
        wait_for(lambda: checkpoint.exists() and f"{topic} 0 {end}\n" in checkpoint.read_text())
        alter(self.client, TOPIC, topic, ("cleanup.policy", Operation.SET, "compact"))

    def rounds(self, topic: str) -> int:
        return self.logd.log.count(f"compacted {topic}-0 ")

    def cleaners(self) -> list[int]:
        children = Path(f"/proc/{self.logd.pid}/task/{self.logd.pid}/children").read_text().split()
        pids = []
        for child in children:
            with suppress(FileNotFoundError, ProcessLookupError):  # it may end between the two looks
                if b"logd.storage.cleaner" in Path(f"/proc/{child}/cmdline").read_bytes():
                    pids.append(int(child))
        return pids

    def _keys(self, topic: str) -> set[bytes | None]:
        keys, position = set(), 0
        while records := self.client.fetch(topic, position, max_wait_ms=1).records:
            for at, header in iter_batches(records):
                keys |= {record[2] for record in decode_records(records, at)}
                position = header.next_offset
        return keys


def _join(group: str, member: str = "", *, session_timeout_ms: int = 30_000) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        member_id=member,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=30_000,
        protocol_type="test",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


def _is_answered(raw: RawClient) -> bool:
    try:
        return bool(raw.request(ApiVersionsRequest(), 0).error_code == 0)
    except (AssertionError, ConnectionError):
        return False


def _writes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/io").read_text().partition("syscw:")[2].split()[0])


def _has_input(raw: RawClient) -> bool:
    return bool(select.select([raw.socket], [], [], 0.01)[0])


def _small_socket(port: int) -> socket.socket:
    """Connect to a port with a socket that has almost no buffers."""
    sock = socket.socket()
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        sock.setsockopt(socket.SOL_SOCKET, option, 4096)
    sock.connect(("127.0.0.1", port))
    return sock


def _send_queue(port: int, peer_port: int) -> int:
    """Return the bytes in the kernel's send queue from one local port to another."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, queues, *_ = line.split()
        if (int(local[-4:], 16), int(remote[-4:], 16)) == (port, peer_port):
            return int(queues.partition(":")[0], 16)
    return 0
