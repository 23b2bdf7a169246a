"""The memory of all stores of an application is bounded by two settings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from streams import StreamsConfig
from streams.serdes import Long, String
from streams.state import RocksMemory, StoreSpec, open_store
from streams.state.rocks import RocksBackend
from tests.streams.support.filling import READS, STORES, VALUE
from tests.support.depth import deep
from tests.support.waiting import wait_for

MB = 1024 * 1024
KEYS = 24_000


@deep
def test_several_stores_stay_within_the_budget(tmp_path: Path) -> None:
    """48 MB of state in four stores, with 4 MB of cache and 4 MB of write buffers: the memory of the whole
    process grows by much less than the state.
    """
    arguments = [str(tmp_path), str(KEYS), str(4 * MB), str(4 * MB)]
    ended = subprocess.run(
        [sys.executable, "-m", "tests.streams.support.filling", *arguments], capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    assert report["read"] == READS
    assert report["files"] > STORES, "the budget had stores write files"
    assert report["cache"] <= 5 * MB
    state = KEYS * STORES * len(VALUE)
    assert report["peak"] - report["before"] < 32 * MB < state


def test_stores_share_the_cache(tmp_path: Path) -> None:
    memory = RocksMemory(block_cache_bytes=2 * MB, write_buffer_bytes=MB)
    spec = StoreSpec(name="a", kind="key_value", key_serde=String(), value_serde=Long())
    stores = [open_store(spec, tmp_path / number, memory) for number in "12"]
    filled, empty = (store.backend for store in stores)
    before = empty.properties()["block-cache-usage"]
    filled.write([(b"%d" % n, bytes(500)) for n in range(1000)], 1)
    filled.make_room()  # type: ignore[attr-defined]

    looks: list[float] = []

    def is_at_rest() -> bool:
        """Files are written in the background, and parts of them go into the cache meanwhile."""
        looks[:] = [each.properties()["block-cache-usage"] for each in (filled, empty, filled)]
        return before < looks[0] == looks[2]

    wait_for(is_at_rest)
    assert looks[0] == looks[1]
    assert [each.properties()["block-cache-capacity"] for each in (filled, empty)] == [2 * MB] * 2
    for store in stores:
        store.close()


def test_a_store_left_alone_makes_room_for_a_busy_one(tmp_path: Path) -> None:
    """The story of the bug: RocksDB has the store that writes make room. While others held the budget, a
    small store wrote a file with each commit.
    """
    memory = RocksMemory(block_cache_bytes=MB, write_buffer_bytes=MB)
    *idle, busy = (RocksBackend(tmp_path / name, memory=memory) for name in ("1", "2", "busy"))
    for each in idle:
        each.write([(b"%d" % n, bytes(1000)) for n in range(440)], 1)
    for commit in range(40):
        busy.write([(b"%d-%d" % (commit, n), bytes(1000)) for n in range(10)], commit)
    for each in (*idle, busy):
        each.close()
    numbers = [int(each.stem) for each in tmp_path.glob("busy/*.sst")]
    assert max(numbers) < 30, "files are numbered as they are written"


def test_the_settings_are_those_of_the_application() -> None:
    config = StreamsConfig.from_properties(
        {
            "application.id": "a",
            "bootstrap.servers": "b:1",
            "rocksdb.block.cache.bytes": "5000000",
            "rocksdb.write.buffer.bytes": "3000000",
        }
    )
    assert (config.rocksdb_block_cache_bytes, config.rocksdb_write_buffer_bytes) == (5_000_000, 3_000_000)
