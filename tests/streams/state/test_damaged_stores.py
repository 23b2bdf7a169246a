"""Stores whose files are not what was written: set aside and restored, or an error that says what to do."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streams import StreamsBuilder, StreamsError
from streams.errors import StateCorrupted, StateError, StateFolderLocked
from streams.serdes import Long, String
from streams.state import RocksMemory, StoreSpec, open_store
from streams.state.rocks import RocksBackend
from tests.streams.support.running import NewName, make_topics, produce, run, start
from tests.support.logd_process import LogdProcess

KEYS = 500


def data_file(store: Path) -> Path:
    """Return the file with the store's records; the one with its checkpoint is smaller."""
    return max(store.glob("*.sst"), key=lambda each: each.stat().st_size)


def flip(file: Path) -> None:
    """Change a byte of the first block."""
    content = bytearray(file.read_bytes())
    content[50] ^= 0xFF
    file.write_bytes(content)


def new_store(path: Path) -> Path:
    store = RocksBackend(path)
    store.write([(b"%04d" % n, b"%d" % n * 50) for n in range(KEYS)], KEYS)
    store.close()
    return path


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "a truncated CURRENT": lambda store: (store / "CURRENT").write_bytes(b""),
    "a byte of the MANIFEST": lambda store: flip(next(store.glob("MANIFEST*"))),
    "no MANIFEST": lambda store: next(store.glob("MANIFEST*")).unlink(),
    "no data": lambda store: data_file(store).unlink(),
    "truncated data": lambda store: data_file(store).write_bytes(b"x"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_what_does_not_open_is_set_aside(
    tmp_path: Path, damage: Callable[[Path], Any], caplog: pytest.LogCaptureFixture
) -> None:
    damage(new_store(tmp_path / "s"))
    with pytest.raises(StateError, match=r"/s is damaged: the store has no changelog .* remove the folder"):
        RocksBackend(tmp_path / "s", on_damage="end")
    store = RocksBackend(tmp_path / "s")
    assert "/s is damaged: it is set aside, and restored from the changelog" in caplog.text
    assert (store.checkpoint, store.origin, [*store.scan()]) == (None, None, [])
    assert (tmp_path / "~damaged-s" / "LOG").exists()
    store.write([(b"a", b"1")], 1)
    store.close()


@pytest.mark.parametrize("read", ["get", "scan", "scan from there", "backwards", "backwards from there"])
def test_what_is_found_by_a_read_is_set_aside_when_closed(tmp_path: Path, read: str) -> None:
    """The story of the bug: rocksdict's iterators end at a damaged block as if there were no more."""
    flip(data_file(new_store(tmp_path / "s")))
    store = RocksBackend(tmp_path / "s")
    assert store.checkpoint == KEYS
    reads: dict[str, Callable[[], object]] = {
        "get": lambda: [store.get(b"%04d" % n) for n in range(KEYS)],
        "scan": lambda: [*store.scan()],
        "scan from there": lambda: [*store.scan(b"0010", b"0020")],
        "backwards": lambda: [*store.scan(backwards=True)],
        "backwards from there": lambda: [*store.scan(b"0010", b"0020", backwards=True)],
    }
    with pytest.raises(StateCorrupted, match=r"/s is damaged: .*checksum mismatch") as raised:
        reads[read]()
    store.close()
    again = RocksBackend(tmp_path / "s")
    assert again.checkpoint is None
    again.close()
    assert raised.tb, "what it holds did not keep the database open"


def test_what_is_damaged_twice_leaves_the_last_aside(tmp_path: Path) -> None:
    for _ in range(2):
        DAMAGE["a truncated CURRENT"](new_store(tmp_path / "s"))
        RocksBackend(tmp_path / "s").close()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["s", "~damaged-s"]


def test_a_store_that_cannot_be_read_to_be_opened_is_closed(tmp_path: Path) -> None:
    """A damaged store that cannot be read while it is opened is closed: a window store reads its segments
    first.
    """
    spec = StoreSpec(
        name="w", kind="window", key_serde=String(), value_serde=Long(), window_size_ms=10, retention_ms=10
    )
    store: Any = open_store(spec, tmp_path)
    for n in range(KEYS):
        store.put(f"{n}", n, n)
    store.drain()
    store.written(KEYS)
    store.close()
    flip(data_file(tmp_path / "w"))
    with pytest.raises(StateCorrupted):
        open_store(spec, tmp_path)
    again = open_store(spec, tmp_path)
    assert again.backend.checkpoint is None
    again.close()


def test_a_store_that_is_open_elsewhere_is_named(tmp_path: Path) -> None:
    store = RocksBackend(tmp_path / "s", memory=RocksMemory())
    with pytest.raises(StateFolderLocked, match=r"/s is open in another process: end that one, or give"):
        RocksBackend(tmp_path / "s")
    store.close()


async def test_a_global_table_is_read_anew_when_the_application_starts_again(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name = new_name("damaged")
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    table = builder.global_table(f"{name}-table", store="table")
    checkpoints: list[int | None] = []
    joined = builder.stream(f"{name}-in").left_join(
        table, lambda value, other: other, key_selector=lambda key, value: key
    )
    joined.foreach(lambda key, value: checkpoints.append(value))
    rows = [(b"%04d" % n, n.to_bytes(8, "big")) for n in range(KEYS)]
    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-table": 1})
    await produce(logd.bootstrap, f"{name}-table", *rows)
    await produce(logd.bootstrap, f"{name}-in", (b"0007", bytes(8)))
    async with start(builder.build(), logd.bootstrap, name, tmp_path) as app:
        await app.wait_until_caught_up()
    flip(data_file(tmp_path / name / "global" / "rocksdb" / "table"))
    await produce(logd.bootstrap, f"{name}-in", (b"0007", bytes(8)))
    problem = "/table is damaged: started again, the application sets it aside"
    with pytest.raises(StreamsError, match=problem):
        async with start(builder.build(), logd.bootstrap, name, tmp_path) as app:
            await app.wait_until_caught_up()
    async with start(builder.build(), logd.bootstrap, name, tmp_path) as app:
        await app.wait_until_caught_up()
    assert checkpoints == [7, 7]


def test_a_global_table_that_could_not_be_flushed_is_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A global table that could not be flushed, since the disk was full, is read again. Its position is in a
    file of its own.
    """
    store = RocksBackend(tmp_path / "s", on_damage="restart")
    store.wipe(b"origin")
    db = store._db

    class Full:
        def flush(self, wait: bool) -> None:
            raise Exception("IO error: No space left on device")

        close = db.close

    monkeypatch.setattr(store, "_db", Full())
    store.close()
    again = RocksBackend(tmp_path / "s", on_damage="restart")
    assert again.origin is None
    again.close()


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_an_application_restores_what_is_damaged(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, guarantee: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Each record counts once, those from before the damage too."""
    name = new_name("damaged")
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream(f"{name}-in").group_by_key().count(store="counts")
    rows = [(b"%04d" % n, bytes(8)) for n in range(KEYS)]

    async def case() -> None:
        await make_topics(logd.bootstrap, **{f"{name}-in": 1})
        for count in (1, 2):
            await produce(logd.bootstrap, f"{name}-in", *rows)
            async with start(
                builder.build(), logd.bootstrap, name, tmp_path, processing_guarantee=guarantee
            ) as app:
                await app.wait_until_caught_up()
                counts = dict(app.stores("counts")[0].all())  # type: ignore[attr-defined]
            assert counts == {key.decode(): count for key, _ in rows}
            flip(data_file(tmp_path / name / "0_0" / "rocksdb" / "counts"))

    with caplog.at_level(logging.WARNING):
        run(case)
    assert "tasks are restored: " in caplog.text and "/counts is damaged: it is set aside" in caplog.text
