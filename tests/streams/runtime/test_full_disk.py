"""A state folder whose disk is full: the application ends and says where; with room again it goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streams import StreamsBuilder, StreamsError, Topology
from streams.errors import StateError
from streams.state.rocks import RocksBackend
from tests.streams.support.running import NewName, make_topics, produce, start
from tests.support import depth
from tests.support.full_disk import filled, mounted
from tests.support.logd_process import LogdProcess

pytestmark = depth.deep
KEYS = 1500
ROUNDS = 6


def collecting(name: str) -> Topology:
    """Keeps what came for each key: some 4 MB in the end."""
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    grouped = builder.stream(f"{name}-in").group_by_key()
    grouped.reduce(lambda so_far, value: so_far + value, store="texts")
    return builder.build()


def rows(number: int) -> list[tuple[bytes, bytes]]:
    return [(b"%d" % key, b"%d" % number * 400) for key in range(KEYS)]


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
async def test_nothing_is_lost_or_counted_twice(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, guarantee: str
) -> None:
    name = new_name("full")
    settings: dict[str, Any] = {
        "processing_guarantee": guarantee,
        "rocksdb_write_buffer_bytes": 1 << 20,
    }
    small = tmp_path / "small"
    small.mkdir()
    await make_topics(logd.bootstrap, **{f"{name}-in": 1})
    with mounted(small, "-t", "tmpfs", "-o", "size=48m", "tmpfs"):
        app = start(collecting(name), logd.bootstrap, name, small, **settings)
        with pytest.raises(StreamsError, match=f"{small}/.* cannot be written, there is no room"):
            async with app:
                await produce(logd.bootstrap, f"{name}-in", *rows(0))
                await app.wait_until_caught_up()
                with filled(small):
                    for number in range(1, ROUNDS):
                        await produce(logd.bootstrap, f"{name}-in", *rows(number))
                    await app.wait_ended()
        async with start(collecting(name), logd.bootstrap, name, small, **settings) as app:
            await app.wait_until_caught_up()
            texts = dict(app.stores("texts")[0].all())  # type: ignore[attr-defined]
    assert len(texts) == KEYS
    assert set(texts.values()) == {"".join(f"{number}" * 400 for number in range(ROUNDS))}


def test_a_start_without_room_says_so(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    with mounted(small, "-t", "tmpfs", "-o", "size=1m", "tmpfs"):
        with filled(small), pytest.raises(StateError, match=f"{small}/s cannot be written, there is no room"):
            RocksBackend(small / "s")
        RocksBackend(small / "s").close()
