"""Source offsets in a file, and which of them may be committed."""

import asyncio
import threading

import pytest

from connect.errors import ConfigError
from connect.runtime.submitted import SubmittedOffsets
from connect.stores import ConnectorOffsets, FileOffsetStore, file_offsets


def test_offsets_survive_in_the_file(tmp_path):
    path = tmp_path / "folder" / "offsets"
    store = FileOffsetStore.open(path)
    offsets = ConnectorOffsets(store, "c")
    key = offsets.key({"filename": "a", "b": 1})
    assert key == b'["c",{"b":1,"filename":"a"}]'
    asyncio.run(offsets.commit({key: offsets.encode({"position": 5})}))
    asyncio.run(offsets.commit({offsets.key({"filename": "é"}): offsets.encode({"position": 7})}))
    store.close()

    again = FileOffsetStore.open(path)
    offsets = ConnectorOffsets(again, "c")
    assert offsets.offset({"b": 1, "filename": "a"}) == {"position": 5}
    assert offsets.offset({"filename": "é"}) == {"position": 7}
    assert ConnectorOffsets(again, "other").offset({"filename": "é"}) is None
    asyncio.run(again.put({key: None}))
    assert again.get(key) is None
    again.close()
    assert path.read_text().count("\n") == 1


def test_a_second_worker_is_kept_out(tmp_path):
    store = FileOffsetStore.open(tmp_path / "offsets")
    with pytest.raises(ConfigError, match="another worker"):
        FileOffsetStore.open(tmp_path / "offsets")
    store.close()
    FileOffsetStore.open(tmp_path / "offsets").close()


def test_a_file_of_something_else_is_refused_and_kept(tmp_path):
    path = tmp_path / "offsets"
    path.write_text("hello\n")
    with pytest.raises(ConfigError):
        FileOffsetStore.open(path)
    assert path.read_text() == "hello\n"


def test_a_failed_write_changes_nothing(tmp_path):
    store = FileOffsetStore.open(tmp_path / "offsets")
    asyncio.run(store.put({b'["c",{}]': b"1"}))
    (tmp_path / "offsets.tmp").mkdir()
    with pytest.raises(Exception, match="cannot be written"):
        asyncio.run(store.put({b'["c",{}]': b"2"}))
    assert store.get(b'["c",{}]') == b"1"
    store.close()


def test_an_offset_is_committable_only_behind_everything_acked():
    submitted = SubmittedOffsets()
    first = submitted.submit({b"A": b"10"})
    second = submitted.submit({b"A": b"20", b"B": b"1"})
    third = submitted.submit({b"A": b"30"})
    assert submitted.take_committable() == {}
    third.acked()
    second.acked()
    assert submitted.take_committable() == {b"B": b"1"}  # A waits for its first batch
    first.acked()
    assert submitted.take_committable() == {b"A": b"30"}
    assert submitted.take_committable() == {}
    assert submitted.pending == 0


def test_a_commit_that_is_cut_off_is_not_forgotten_by_the_next(tmp_path, monkeypatch):
    """Offsets survive if the task that commits them is cancelled while they are written.

    Once another task's commit wrote the same temporary file meanwhile, without the first one's offsets.
    """
    began, go, writing = threading.Event(), threading.Event(), []

    def slow(path, offsets):
        writing.append(dict(offsets))
        began.set()
        go.wait()
        write(path, offsets)
        writing.append("written")

    write = file_offsets._write
    monkeypatch.setattr(file_offsets, "_write", slow)

    async def run():
        first = asyncio.create_task(store.put({b'["a",{}]': b"1"}))
        await asyncio.to_thread(began.wait)
        first.cancel()
        second = asyncio.create_task(store.put({b'["b",{}]': b"2"}))
        await asyncio.gather(first, return_exceptions=True)
        go.set()
        await second

    store = FileOffsetStore.open(tmp_path / "offsets")
    asyncio.run(run())
    store.close()
    assert writing[1] == "written"
    assert (tmp_path / "offsets").read_text() == '[["a",{}],1]\n[["b",{}],2]\n'
