"""Consumers of every library read a topic while it is written to and the broker's cleaner runs.

A reader may miss records that the cleaner removed first, and no others. Offsets and each key's values come
in order, and every record is the one written at its offset. In the end the reader has the topic's final
state, including tombstones.
"""

from __future__ import annotations

import itertools
import random
import re
import time
from pathlib import Path

from kafka_client.records import Codec, build_batch
from tests.interop.clients.base import LIBRARIES, Member, load
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

pytestmark = deep

SETTINGS = {
    "log.cleaner.backoff.ms": 20,
    "log.cleaner.dedupe.buffer.size": 2_000_000,
    "millstream.flush.interval.ms": 30,
    "log.segment.delete.delay.ms": 20,
}
COMPACTED = {"cleanup.policy": "compact", "segment.bytes": "30000", "min.cleanable.dirty.ratio": "0.01"}
TOPIC, KEYS, PER_POLL = "t", 50, 25
RECORDS_MIN = 3_000
ROUNDS_MIN = 5


class Log:
    """All written records by offset, and the last value of each key."""

    def __init__(self, client: RawClient) -> None:
        self.client = client
        self.by_offset: dict[int, tuple[bytes, bytes | None]] = {}
        self.last: dict[bytes, bytes | None] = {}
        self._random = random.Random(1)
        self._numbers = itertools.count()

    def write(self) -> None:
        """Write a batch of records, a twentieth of them tombstones."""
        puts = [self._put() for _ in range(self._random.randint(1, 8))]
        now = int(time.time() * 1000)
        codec = Codec(self._random.randrange(5))
        batch = build_batch([(now, key, value, ()) for key, value in puts], codec=codec)
        produced = self.client.produce(TOPIC, batch)
        assert produced.error_code == 0
        self.by_offset.update(enumerate(puts, produced.base_offset))
        self.last.update(puts)

    def _put(self) -> tuple[bytes, bytes | None]:
        """Return a key and a value. Every tenth key is used once only: its record has to survive cleaning."""
        number = next(self._numbers)
        key = b"key-%d" % self._random.randrange(KEYS) if self._random.random() < 0.9 else b"once-%d" % number
        return key, None if self._random.random() < 0.05 else b"%d-" % number + b"x" * 300


class Reader:
    """A member of its own group, and what it was given."""

    def __init__(self, name: str, member: Member, log: Log) -> None:
        self.name = name
        self.member = member
        self.offset = -1
        self.state: dict[bytes | None, bytes | None] = {}
        self.count = 0
        self._log = log

    def poll(self) -> None:
        for _, (offset, _, key, value, _) in self.member.poll():
            assert offset > self.offset, f"{self.name}: {offset} after {self.offset}"
            assert (key, value) == self._log.by_offset[offset], f"{self.name}: not what is at {offset}"
            self.offset = offset
            self.state[key] = value
            self.count += 1

    def is_done(self) -> bool:
        self.poll()
        return self.offset == max(self._log.by_offset)


def write(log: Log, readers: list[Reader]) -> bool:
    """Write some batches and poll every reader. Return True once enough is written."""
    for _ in range(PER_POLL):
        log.write()
    for reader in readers:
        reader.poll()
    return len(log.by_offset) >= RECORDS_MIN


def rounds(logd: LogdProcess) -> int:
    return len(re.findall(f"compacted {TOPIC}-0 ", logd.log))


def test_the_final_state_in_order(tmp_path: Path) -> None:
    readers: list[Reader] = []
    with LogdProcess(tmp_path, SETTINGS) as logd, RawClient(logd.port) as client:
        create_topic(logd, TOPIC, COMPACTED)
        log = Log(client)

        def join(when: str) -> list[Reader]:
            joined = [
                Reader(f"{name}, {when}", load(name).member(logd.bootstrap, f"{name}-{when}", TOPIC), log)
                for name in LIBRARIES
            ]
            readers.extend(joined)
            return joined

        try:
            join("from the start")
            wait_for(lambda: write(log, readers) and rounds(logd) >= ROUNDS_MIN, 200)
            join("midway")
            wait_for(lambda: write(log, readers) and rounds(logd) >= 2 * ROUNDS_MIN, 200)
            late = join("at the end")
            for reader in readers:
                wait_for(reader.is_done)
                assert reader.state == log.last, reader.name
            assert all(reader.count < len(log.by_offset) for reader in late), "nothing was compacted"
        finally:
            for reader in readers:
                reader.member.close()
        assert "Traceback" not in logd.log
