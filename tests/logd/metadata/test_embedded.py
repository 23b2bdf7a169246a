from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from logd.metadata.image import Change, ClusterImage, TopicImage
from logd.metadata.journal_store import FILE_NAME, JournalStore
from logd.storage.disk import PosixDisk


def topic(name: str, number: int) -> TopicImage:
    return TopicImage(name=name, topic_id=bytes([number]) * 16, partitions=number, configs={"a": "b"})


def write(folder: Path, *writes: list[Change]) -> None:
    async def run() -> None:
        store = JournalStore(folder, PosixDisk())
        store.load()
        for changes in writes:
            await store.write(changes)
        store.close()

    asyncio.run(run())


def load(folder: Path) -> ClusterImage:
    store = JournalStore(folder, PosixDisk())
    image = store.load()
    store.close()
    return image


def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    write(
        tmp_path,
        [topic("one", 1).as_change()],
        [topic("two", 2).as_change(), {"type": "producer-ids", "next": 1000}],
        [{"type": "broker-configs", "broker": "", "configs": {"log.retention.ms": "5"}}],
        [{"type": "topic-deleted", "name": "one"}],
    )
    image = load(tmp_path)
    assert image.topics == {"two": topic("two", 2)}
    assert image.deleted == {bytes([1]) * 16}
    assert image.next_producer_id == 1000
    assert image.broker_configs == {"": {"log.retention.ms": "5"}}


@pytest.mark.parametrize("torn", [b"0", b'00000000 [{"type"', b"deadbeef [1]\n"])
def test_a_torn_tail_is_cut_off_and_writing_goes_on(tmp_path: Path, torn: bytes) -> None:
    write(tmp_path, [topic("one", 1).as_change()])
    with (tmp_path / FILE_NAME).open("ab") as journal:
        journal.write(torn)
    write(tmp_path, [topic("two", 2).as_change()])
    assert set(load(tmp_path).topics) == {"one", "two"}


def test_a_long_journal_is_rewritten_to_what_it_adds_up_to(tmp_path: Path) -> None:
    changes = [topic("same", number % 100 + 1).as_change() for number in range(300)]
    write(tmp_path, *[[change] for change in changes])
    before = (tmp_path / FILE_NAME).stat().st_size
    store = JournalStore(tmp_path, PosixDisk())
    image = store.load()
    store.compact(image)
    store.close()
    assert (tmp_path / FILE_NAME).stat().st_size < before / 50
    assert load(tmp_path).topics == image.topics
    write(tmp_path, [topic("later", 3).as_change()])
    assert set(load(tmp_path).topics) == {"same", "later"}


def test_a_change_of_a_later_version_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, [{"type": "of the future", "x": 1}], [topic("one", 1).as_change()])
    assert set(load(tmp_path).topics) == {"one"}


def test_a_write_that_fails_leaves_the_journal_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(fd: int) -> None:
        raise OSError(28, "No space left on device")

    async def run() -> None:
        store = JournalStore(tmp_path, PosixDisk())
        store.load()
        await store.write([topic("one", 1).as_change()])
        with monkeypatch.context() as patched:
            patched.setattr("os.fdatasync", fail)
            with pytest.raises(OSError, match="No space"):
                await store.write([topic("lost", 2).as_change()])
        await store.write([topic("two", 2).as_change()])
        store.close()

    asyncio.run(run())
    assert set(load(tmp_path).topics) == {"one", "two"}
