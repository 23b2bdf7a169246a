"""Each topic setting does what it says: given at creation, altered while running, or as the broker's default
changed while running. A topic without it shows that the effect is the setting's.

What the cleaner's settings do is tested with the cleaner, flush.messages and flush.ms by the disk's syncs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.records import Codec, NewRecord, build_batch, read_header
from logd.broker.topics.configs import Operation
from logd.config import TOPIC_SETTINGS
from logd.storage.disk import PosixDisk
from logd.storage.preallocation import preallocate
from tests.logd.api.test_configs import BROKER, TOPIC, alter, described
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

SETTINGS = {
    "log.retention.check.interval.ms": "20",
    "millstream.flush.interval.ms": "20",
    "log.cleaner.enable": "false",
}
OLD = int(time.time() * 1000) - 3_600_000
DAYS = 500_000_000
"""A retention in ms, shorter than the default."""
TEXT = b" ".join(b"%d: the quick brown fox jumps over %d lazy dogs" % (i * 7919, i % 13) for i in range(400))

Check = Callable[[], bool]


class World(NamedTuple):
    """A broker to try configs on."""

    logd: LogdProcess
    client: RawClient
    data: Path

    def produce(
        self,
        topic: str,
        *,
        size: int = 10,
        timestamp: int | None = None,
        ahead_ms: int = 0,
        key: bytes | None = b"k",
    ) -> int:
        """Produce one record and return the error code. Its timestamp is now plus ``ahead_ms``, unless
        given.
        """
        when = int(time.time() * 1000) + ahead_ms if timestamp is None else timestamp
        code: int = self.client.produce(topic, [(when, key, b"v" * size, ())]).error_code
        return code

    def files(self, topic: str, pattern: str) -> list[Path]:
        return sorted((self.data / f"{topic}-0").glob(pattern))

    def start_offset(self, topic: str) -> int:
        """Return the log start offset of a topic with six records."""
        offset: int = self.client.fetch(topic, 6, max_wait_ms=1).log_start_offset
        return offset


def refuses(code: ErrorCode, **record: object) -> Callable[[World, str], Check]:
    """Return an effect: the topic answers a record with `code`."""
    return lambda world, topic: lambda: world.produce(topic, **record) == code  # type: ignore[arg-type]


def append_time(world: World, topic: str) -> Check:
    return lambda: world.client.produce(topic, [(1, b"k", b"v", ())]).log_append_time_ms > 0


def codec_is(codec: Codec) -> Callable[[World, str], Check]:
    def effect(world: World, topic: str) -> Check:
        return lambda: world.produce(topic) == 0 and read_header(stored(world, topic)).codec == codec

    return effect


def stored(world: World, topic: str) -> bytes:
    """Return the last batch of the topic's log file."""
    (log,) = world.files(topic, "*.log")
    data, start = log.read_bytes(), 0
    while start + (size := read_header(data, start).size) < len(data):
        start += size
    return data[start:]


def packed_with(codec: Codec, level: int) -> Callable[[World, str], Check]:
    """Return an effect: stored records have the size that `codec` at `level` gives."""
    records: list[NewRecord] = [(OLD, b"k", TEXT, ())]

    def effect(world: World, topic: str) -> Check:
        def is_so() -> bool:
            assert world.client.produce(topic, records).error_code == 0
            return len(stored(world, topic)) == len(build_batch(records, codec=codec, level=level))

        return is_so

    return effect


def rolls(*timestamps: int, size: int = 1000) -> Callable[[World, str], Check]:
    """Return an effect: records with these timestamps go into more than one segment."""

    def effect(world: World, topic: str) -> Check:
        def is_so() -> bool:
            for timestamp in timestamps:
                assert world.produce(topic, size=size, timestamp=timestamp) == 0
            return len(world.files(topic, "*.log")) > 1

        return is_so

    return effect


def indexes(world: World, topic: str) -> Check:
    for _ in range(5):
        assert world.produce(topic, size=500) == 0
    return lambda: any(path.stat().st_size for path in world.files(topic, "*.index"))


def drops_old(world: World, topic: str) -> Check:
    for _ in range(6):
        assert world.produce(topic, size=900, timestamp=OLD) == 0
    return lambda: world.start_offset(topic) > 0


def deletes_files(world: World, topic: str) -> Check:
    """Return an effect: files of deleted segments are gone from the disk, under any name."""
    for _ in range(6):
        assert world.produce(topic, size=900, timestamp=OLD) == 0
    wait_for(lambda: world.start_offset(topic) == 6)
    return lambda: not world.files(topic, f"{0:020}*")


def allocates(world: World, topic: str) -> Check:
    assert world.produce(topic) == 0
    (log,) = world.files(topic, "*.log")
    return lambda: log.stat().st_blocks * 512 >= 1_000_000 > log.stat().st_size


class Case(NamedTuple):
    """A config with its effect: it is there with `key` at `value` and not without; `rest` is set either way.

    The effect is there as soon as the config is acknowledged, unless it `comes_later`, by the clock.
    """

    key: str
    value: str
    effect: Callable[[World, str], Check]
    rest: dict[str, str] = {}
    comes_later: bool = False

    def shows(self, world: World, topic: str) -> None:
        """Check that the topic shows the effect; raises AssertionError otherwise."""
        check = self.effect(world, topic)
        if self.comes_later:
            wait_for(check)
        else:
            assert check()


def refuses_decompressed(world: World, topic: str) -> Check:
    """Return an effect: compressed records of 200 bytes are refused, as in Kafka, and no others."""

    def is_so() -> bool:
        assert world.produce(topic, size=200) == 0
        batch = build_batch([(int(time.time() * 1000), b"k", b"v" * 200, ())], codec=Codec.GZIP)
        return bool(world.client.produce(topic, batch).error_code == ErrorCode.INVALID_RECORD)

    return is_so


SMALL = {"segment.bytes": "2000"}
CASES = (
    Case("max.decompressed.message.bytes", "200", refuses_decompressed),
    Case("max.message.bytes", "100", refuses(ErrorCode.MESSAGE_TOO_LARGE, size=200)),
    Case("message.timestamp.type", "LogAppendTime", append_time),
    Case(
        "message.timestamp.after.max.ms",
        "1000",
        refuses(ErrorCode.INVALID_TIMESTAMP, ahead_ms=1_800_000),
    ),
    Case("message.timestamp.before.max.ms", "1000", refuses(ErrorCode.INVALID_TIMESTAMP, timestamp=OLD)),
    Case("compression.type", "gzip", codec_is(Codec.GZIP)),
    Case("compression.type", "snappy", codec_is(Codec.SNAPPY)),
    Case("compression.type", "lz4", codec_is(Codec.LZ4)),
    Case("compression.type", "zstd", codec_is(Codec.ZSTD)),
    Case("compression.gzip.level", "1", packed_with(Codec.GZIP, 1), {"compression.type": "gzip"}),
    Case("compression.lz4.level", "1", packed_with(Codec.LZ4, 1), {"compression.type": "lz4"}),
    Case("compression.zstd.level", "19", packed_with(Codec.ZSTD, 19), {"compression.type": "zstd"}),
    Case("cleanup.policy", "compact", refuses(ErrorCode.INVALID_RECORD, key=None)),
    Case("cleanup.policy", "compact,delete", refuses(ErrorCode.INVALID_RECORD, key=None)),
    Case("segment.bytes", "2000", rolls(OLD, OLD, OLD)),
    Case("segment.ms", "1000", rolls(OLD, OLD + 1001)),
    # Of which the broker draws a part; one in five hundred million draws is none.
    Case("segment.jitter.ms", str(DAYS), rolls(OLD - DAYS, OLD), {"segment.ms": str(DAYS)}),
    Case("index.interval.bytes", "1", indexes, comes_later=True),  # an index is in memory until a flush
    Case("segment.index.bytes", "24", rolls(*range(OLD, OLD + 10), size=100), {"index.interval.bytes": "1"}),
    Case("retention.ms", "1000", drops_old, SMALL, comes_later=True),
    Case("retention.bytes", "2500", drops_old, SMALL, comes_later=True),
    Case("file.delete.delay.ms", "0", deletes_files, {**SMALL, "retention.ms": "1000"}, comes_later=True),
    Case("preallocate", "true", allocates, {"segment.bytes": "1000000"}),
)
ELSEWHERE = {
    *("flush.messages", "flush.ms"),  # tests/logd/broker/test_durability.py
    *("delete.retention.ms", "max.compaction.lag.ms", "min.cleanable.dirty.ratio", "min.compaction.lag.ms"),
}
"""Configs whose tests are in other files."""
ACCEPTED = {
    "min.insync.replicas": "2",
    "follower.replication.throttled.replicas": "*",
    "leader.replication.throttled.replicas": "0:1,1:1",
    "unclean.leader.election.enable": "true",
    "local.retention.bytes": "5",
    "local.retention.ms": "5",
    "remote.log.copy.disable": "true",
    "remote.log.delete.on.disable": "true",
    "remote.storage.enable": "false",
}
"""Configs that are accepted and shown without effect: one broker has no followers and no tiered storage."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("topic-configs")
    with LogdProcess(folder, SETTINGS) as logd, RawClient(logd.port) as client:
        yield World(logd, client, folder / "data")


@pytest.fixture(autouse=True)
def can_preallocate(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    if "preallocate" in request.node.name:
        file = PosixDisk().open(tmp_path / "probe")
        preallocate(file, 100_000)
        if (tmp_path / "probe").stat().st_blocks == 0:
            pytest.skip("this file system does not preallocate")


@pytest.fixture(params=CASES, ids=lambda case: f"{case.key}={case.value}")
def case(request: pytest.FixtureRequest) -> Case:
    param: Case = request.param
    return param


def without(world: World, case: Case, name: str) -> Check:
    """Return the effect's check for a topic that has all settings of the case but the tested one."""
    return case.effect(world, create_topic(world.logd, name, case.rest))


@deep
def test_at_creation(world: World, case: Case, new_name: Callable[..., str]) -> None:
    plain = without(world, case, new_name())
    case.shows(world, create_topic(world.logd, new_name(), {**case.rest, case.key: case.value}))
    assert not plain()


@deep
def test_altered_while_running_and_back(world: World, case: Case, new_name: Callable[..., str]) -> None:
    name = create_topic(world.logd, new_name(), case.rest)
    plain = without(world, case, new_name())
    assert alter(world.client, TOPIC, name, (case.key, Operation.SET, case.value)).error_code == 0
    case.shows(world, name)
    assert not plain()
    assert alter(world.client, TOPIC, name, (case.key, Operation.DELETE, None)).error_code == 0
    assert described(world.client, TOPIC, name, case.key).value == str(
        described(world.client, TOPIC, create_topic(world.logd, new_name(), case.rest), case.key).value
    )


@deep
def test_as_the_brokers_default_changed_while_running(
    world: World, case: Case, new_name: Callable[..., str]
) -> None:
    (key, *_) = TOPIC_SETTINGS[case.key].broker_keys
    name = create_topic(world.logd, new_name(), case.rest)
    assert alter(world.client, BROKER, "", (key, Operation.SET, case.value)).error_code == 0
    try:
        case.shows(world, name)
    finally:
        assert alter(world.client, BROKER, "", (key, Operation.DELETE, None)).error_code == 0
    assert not without(world, case, new_name())()


@pytest.mark.parametrize(("key", "value"), ACCEPTED.items())
def test_settings_that_are_only_kept(
    world: World, key: str, value: str, new_name: Callable[..., str]
) -> None:
    name = create_topic(world.logd, new_name(), {key: value})
    assert described(world.client, TOPIC, name, key).value == value
    assert alter(world.client, TOPIC, name, (key, Operation.DELETE, None)).error_code == 0
    assert world.produce(name) == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("leader.replication.throttled.replicas", "0-1"),
        ("compression.gzip.level", "0"),
        ("min.compaction.lag.ms", "9223372036854775808"),
        ("max.compaction.lag.ms", "0"),
    ],
)
def test_values_kafka_refuses(world: World, key: str, value: str, new_name: Callable[..., str]) -> None:
    name = create_topic(world.logd, new_name())
    refused = alter(world.client, TOPIC, name, (key, Operation.SET, value))
    assert refused.error_code == ErrorCode.INVALID_CONFIG
    assert key in refused.error_message


def test_lags_that_contradict_each_other(world: World, new_name: Callable[..., str]) -> None:
    name = create_topic(world.logd, new_name(), {"max.compaction.lag.ms": "1000"})
    refused = alter(world.client, TOPIC, name, ("min.compaction.lag.ms", Operation.SET, "1001"))
    assert refused.error_code == ErrorCode.INVALID_CONFIG


def test_no_setting_is_left_out() -> None:
    assert {case.key for case in CASES} | ELSEWHERE | set(ACCEPTED) == set(TOPIC_SETTINGS)
