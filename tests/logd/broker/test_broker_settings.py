"""Each broker setting changes what it says: looked at where it is set, and where it is not.

The settings stand on two brokers, none where it disturbs another; a third has none of them. Settings that
other tests are about are not here again: `test_no_setting_is_without_a_test` knows them all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from logd.config import BROKER_SETTINGS
from logd.errors import ErrorCode
from logd.storage.disk import PosixDisk
from logd.storage.preallocation import preallocate
from tests.logd.broker.broker_settings import HOUR_MS, Broker, now_ms
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient

EVERYWHERE = {
    "log.cleaner.backoff.ms": 50,
    "log.cleaner.dedupe.buffer.size": 2_200_000,
    "log.retention.check.interval.ms": 50,
    "log.retention.ms": -1,
    "log.segment.bytes": 1_000_000,
    "millstream.flush.interval.ms": 50,
    "replica.alter.log.dirs.io.max.bytes.per.second": 1,
}
BESIDES = {
    "fine": {"log.cleaner.dedupe.buffer.size": 1 << 20},
    "slow": {"millstream.flush.interval.ms": HOUR_MS},
}
"""What makes effects visible: memory for 2,184 keys by the load factor; no checkpoints for flushes' sake."""
CREATE_TIME = {"message.timestamp.type": "CreateTime"}
Look = Callable[[Broker], Any]
Check = Callable[[Any], bool]


class Case(NamedTuple):
    """`look` at the broker that has the setting finds what is `expected`, at the plain one something else.

    Where only waiting would tell that something else, `is_awaited`: the look waits for what is expected.
    """

    broker: str
    key: str
    value: object
    look: Look
    expected: Check
    is_awaited: bool = False


def equals(value: object) -> Check:
    return lambda found: bool(found == value)


def before_max(broker: Broker) -> int:
    return broker.appended(now_ms() - 48 * HOUR_MS, CREATE_TIME)[0]


def after_max(broker: Broker) -> int:
    return broker.appended(now_ms() + 2 * HOUR_MS, CREATE_TIME)[0]


def jitter(broker: Broker) -> int:
    return broker.segments(HOUR_MS, segment_ms=str(HOUR_MS))


CASES = (
    Case("fine", "broker.rack", "r9", Broker.rack, equals("r9")),
    Case("fine", "fetch.max.bytes", 2_500, Broker.batches_fetched, equals(2)),
    Case("fine", "group.max.size", 1, Broker.second_member, equals(ErrorCode.GROUP_MAX_SIZE_REACHED)),
    Case("fine", "log.cleaner.delete.retention.ms", 0, Broker.keeps_tombstones, equals(False)),
    Case(
        "fine",
        "log.cleaner.io.buffer.load.factor",
        0.05,
        Broker.rounds_for_many_keys,
        lambda found: found > 2,
    ),
    Case("fine", "log.cleaner.io.buffer.size", 4_096, Broker.cleaner_writes, lambda found: found > 50),
    Case("fine", "log.cleaner.max.compaction.lag.ms", 1_000, Broker.is_compacted_in_time, bool, True),
    Case("slow", "log.flush.start.offset.checkpoint.interval.ms", 50, Broker.start_is_noted, bool, True),
    Case(
        "fine",
        "log.message.timestamp.before.max.ms",
        24 * HOUR_MS,
        before_max,
        equals(ErrorCode.INVALID_TIMESTAMP),
    ),
    Case("fine", "log.preallocate", "true", Broker.disk_bytes, lambda found: found >= 1_000_000),
    Case("fine", "log.roll.jitter.ms", HOUR_MS, jitter, equals(2)),
    Case("fine", "log.roll.ms", HOUR_MS, lambda broker: broker.segments(HOUR_MS + 1), equals(2)),
    Case("fine", "max.connections", 20, Broker.served, lambda found: found < 24),
    Case("fine", "socket.receive.buffer.bytes", 4_096, Broker.taken_unread, lambda found: found < 50_000),
    Case(
        "coarse", "delete.topic.enable", "false", Broker.deletion, equals(ErrorCode.TOPIC_DELETION_DISABLED)
    ),
    Case(
        "coarse",
        "log.cleaner.io.max.bytes.per.second",
        200_000,
        Broker.cleaning_seconds,
        lambda found: found > 1,
        True,
    ),
    Case("coarse", "log.cleaner.threads", 2, Broker.cleaners_at_once, equals(2)),
    Case("coarse", "log.index.size.max.bytes", 16, Broker.index_segments, lambda found: found > 1),
    Case("coarse", "log.message.timestamp.after.max.ms", 9 * HOUR_MS, after_max, equals(ErrorCode.NONE)),
    Case(
        "coarse",
        "log.message.timestamp.type",
        "LogAppendTime",
        lambda broker: broker.appended(1),
        equals((ErrorCode.NONE, True)),
    ),
    Case("coarse", "log.retention.bytes", 10_000, Broker.is_cut_by_size, bool),
    Case("coarse", "log.roll.hours", 2, lambda broker: broker.segments(2 * HOUR_MS + 1), equals(2)),
    Case("coarse", "log.roll.jitter.hours", 1, jitter, equals(2)),
    Case("coarse", "num.replica.alter.log.dirs.threads", 1, Broker.moving_at_once, equals(1), True),
    Case(
        "coarse",
        "offset.metadata.max.bytes",
        10,
        Broker.long_metadata,
        equals(ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ),
    Case("coarse", "socket.send.buffer.bytes", 4_096, Broker.given_unread, lambda found: found < 50_000),
    Case(
        "coarse",
        "transaction.max.timeout.ms",
        20_000,
        Broker.long_transaction,
        equals(ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ),
)


class Brokers:
    """Started when first asked for."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self.named = cache(self._start)

    def _start(self, name: str) -> Broker:
        folder = self._folder / name
        own = {case.key: case.value for case in CASES if case.broker == name}
        own |= BESIDES.get(name, {})
        folders = {"log.dirs": f"{folder / 'a'},{folder / 'b'}"}
        logd = self._stack.enter_context(LogdProcess(folder, {**folders, **EVERYWHERE, **own}))
        return Broker(logd, self._stack.enter_context(RawClient(logd.port)))


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    with ExitStack() as stack:
        yield Brokers(tmp_path_factory.mktemp("settings"), stack)


@pytest.fixture(autouse=True)
def can_preallocate(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    if "preallocate" in request.node.name:
        file = PosixDisk().open(tmp_path / "probe")
        preallocate(file, 100_000)
        if (tmp_path / "probe").stat().st_blocks == 0:
            pytest.skip("this file system does not preallocate")


@deep
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.key}={case.value}")
def test_each_setting_changes_what_it_says(brokers: Brokers, case: Case) -> None:
    found = case.look(brokers.named(case.broker))
    assert case.expected(found), found
    if not case.is_awaited:
        found = case.look(brokers.named("plain"))
        assert not case.expected(found), f"{found}, also without the setting"


def test_no_setting_is_without_a_test() -> None:
    """One that does nothing has to say so."""
    tests = Path(__file__).parents[2]
    text = "\n".join(path.read_text() for path in sorted(tests.rglob("*.py")))
    named = set(re.findall(r"[a-z]+(?:\.[a-z0-9]+)*", text))
    assert [
        key
        for key, setting in BROKER_SETTINGS.items()
        if key not in named and "ithout effect" not in setting.doc
    ] == []
