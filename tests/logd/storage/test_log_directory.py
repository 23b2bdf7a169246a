"""A log directory: its lock, its identity, its checkpoints, making and deleting logs."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_client.errors import KafkaError
from logd.config.topic import TopicConfig
from logd.storage import DirectoryLocked, DirectoryMismatch, Log, LogDirectory, StorageError
from logd.storage.checkpoints import encode_uuid, read_offsets
from logd.storage.log.state import LogState
from tests.support.descriptors import open_below

TOPIC_ID = bytes(range(16))


def open_folder(path: Path, *, node_id: int = 1, cluster_id: str | None = "cluster") -> LogDirectory:
    return LogDirectory.open(
        path, node_id=node_id, cluster_id=cluster_id, config_for=lambda topic: TopicConfig(), now_ms=0
    )


def test_a_second_process_is_kept_out(store: Any) -> None:
    program = (
        "import sys; from pathlib import Path; from logd.storage.lock import DirectoryLock\n"
        "from logd.storage import DirectoryLocked\n"
        "try: DirectoryLock(Path(sys.argv[1]))\n"
        "except DirectoryLocked as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(store.path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == f"log directory {store.path}: in use by process {os.getpid()}"


def test_a_second_opening_in_this_process_is_kept_out(store: Any) -> None:
    with pytest.raises(DirectoryLocked, match=str(store.path)):
        open_folder(store.path)
    store.close()
    open_folder(store.path).close()


def test_the_folder_knows_whose_it_is(tmp_path: Path) -> None:
    folder = open_folder(tmp_path, node_id=3, cluster_id=None)
    cluster, directory = folder.cluster_id, folder.directory_id
    folder.close()
    assert (tmp_path / "meta.properties").read_text().splitlines() == [
        "version=1",
        f"cluster.id={cluster}",
        "node.id=3",
        f"directory.id={encode_uuid(directory)}",
    ]
    with pytest.raises(DirectoryMismatch, match="belongs to node 3, not to node 4"):
        open_folder(tmp_path, node_id=4, cluster_id=None)
    with pytest.raises(DirectoryMismatch, match=f"belongs to cluster {cluster}, not to cluster other"):
        open_folder(tmp_path, node_id=3, cluster_id="other")
    again = open_folder(tmp_path, node_id=3, cluster_id=None)
    assert (again.cluster_id, again.directory_id) == (cluster, directory)
    again.close()


def test_a_folder_of_an_older_kafka_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("#\n#Sat Nov 21\nbroker.id=2\nversion=0\ncluster.id=abc\n")
    folder = open_folder(tmp_path, node_id=2, cluster_id=None)
    assert folder.cluster_id == "abc"
    folder.close()
    assert "version=1\n" in (tmp_path / "meta.properties").read_text()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be used"):
        open_folder(tmp_path / "file" / "logs")


def test_topic_ids_are_kept(store: Any) -> None:
    assert (
        store.log_path / "partition.metadata"
    ).read_text() == "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert store.reopen(clean=False).topic_id == TOPIC_ID
    (store.log_path / "partition.metadata").write_text("")
    assert store.reopen(clean=False).topic_id is None


def test_a_stop_writes_what_kafka_looks_for(store: Any) -> None:
    store.configure(index_interval_bytes=50)
    for _ in range(3):
        store.append("a")
    store.log.shortening.delete_records_before(1)
    store.folder.close({("t", 0): 2})
    store.folder = None
    assert {path.name for path in store.path.iterdir()} == {
        ".kafka_cleanshutdown",
        ".lock",
        "log-start-offset-checkpoint",
        "meta.properties",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        "t-0",
    }
    assert (store.path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nt 0 3\n"
    assert (store.path / "log-start-offset-checkpoint").read_text() == "0\n1\nt 0 1\n"
    assert (store.path / "replication-offset-checkpoint").read_text() == "0\n1\nt 0 2\n"
    assert store.files() == {
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000003.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    }
    store.open()
    assert store.folder.high_watermarks == {("t", 0): 2}


def test_a_deleted_log_is_renamed_then_removed(store: Any) -> None:
    store.append("a")
    deletion = store.folder.delete_log("t", 0)
    assert not store.log_path.exists()
    (left,) = (path for path in store.path.iterdir() if path.is_dir())
    prefix, suffix = left.name.split(".")
    assert prefix == "t-0" and suffix.endswith("-delete") and len(suffix) == 32 + len("-delete")
    log = store.folder.create_log("t", 0, topic_id=None, config=store.config, now_ms=0)
    assert log.log_end_offset == 0
    deletion.run()
    assert not left.exists()


def test_a_deleted_log_left_over_is_removed_at_the_next_start(store: Any) -> None:
    store.append("a")
    store.folder.delete_log("t", 0)
    store.kill()
    folder = open_folder(store.path)
    assert not folder.logs
    for deletion in folder.deletions:
        deletion.run()
    assert not [path for path in store.path.iterdir() if path.is_dir()]
    folder.close()


def test_the_longest_topic_name_can_be_deleted(store: Any) -> None:
    topic = "n" * 249
    store.folder.create_log(topic, 0, topic_id=None, config=store.config, now_ms=0)
    store.folder.delete_log(topic, 0).run()


def test_names_with_dashes_and_dots(store: Any) -> None:
    for topic in ("a-1", "a", "b.c-d_e"):
        store.folder.create_log(topic, 12, topic_id=None, config=store.config, now_ms=0)
    store.reopen(clean=True)
    assert set(store.folder.logs) == {("t", 0), ("a-1", 12), ("a", 12), ("b.c-d_e", 12)}


def test_what_is_no_log_is_left_alone(store: Any) -> None:
    (store.path / "lost+found").mkdir()
    (store.path / "__cluster_metadata-0").mkdir()
    (store.path / "note-1").write_text("a file")
    store.reopen(clean=True)
    assert set(store.folder.logs) == {("t", 0)}
    assert (store.path / "lost+found").exists()


def test_checkpoints_are_written_when_something_changed(store: Any) -> None:
    store.append("a")
    store.log.flusher.flush()
    store.folder.start_checkpoint()()
    assert (store.path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nt 0 1\n"
    before = (store.path / "recovery-point-offset-checkpoint").stat().st_ino
    store.folder.start_checkpoint()()
    assert (store.path / "recovery-point-offset-checkpoint").stat().st_ino == before


@pytest.mark.parametrize("content", ["", "0\n", "0\n2\nt 0 5\n", "1\n0\n", "0\n1\nt zero 5\n", "\x00" * 30])
def test_a_broken_checkpoint_counts_as_none(store: Any, content: str) -> None:
    store.append("a")
    store.log.flusher.flush()
    store.kill()
    for name in ("recovery-point", "log-start", "replication"):
        (store.path / f"{name}-offset-checkpoint").write_text(content)
    (store.log_path / "leader-epoch-checkpoint").write_text(content)
    store.open()
    assert (store.log.log_start_offset, store.log.log_end_offset, store.log.epoch_of(0)) == (0, 1, 0)


def test_idle_logs_hold_no_descriptors(store: Any, batch: Any) -> None:
    for partition in range(1, 20):
        log = store.folder.create_log("t", partition, topic_id=None, config=store.config, now_ms=0)
        log.writer.append(batch("x"), 0, 0)
    store.close()
    assert open_below(store.path) == []
    store.open()
    assert open_below(store.path) == [str(store.path / ".lock")]


def test_of_two_checkpoints_the_later_one_stays(store: Any) -> None:
    """Checkpoints do not overwrite later ones. One may wait in the thread pool while a topic is deleted and
    created again under the same name.
    """
    for _ in range(3):
        store.append("x")
    store.log.flusher.flush()
    waiting = store.folder.start_checkpoint()
    store.folder.delete_log("t", 0).run()
    store.folder.create_log("t", 0, topic_id=None, config=store.config, now_ms=store.now)
    waiting()
    assert read_offsets(store.path / "recovery-point-offset-checkpoint") == {}


def test_checkpoints_may_be_written_from_several_threads(store: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        for _ in range(100):
            store.append("x")
            store.log.flusher.flush()
            pool.submit(store.folder.start_checkpoint())
    assert store.folder.failure is None
    assert "t 0 100" in (store.path / "recovery-point-offset-checkpoint").read_text()


def test_a_deleted_log_waits_for_no_garbage_collection(store: Any) -> None:
    """Deleted logs are freed without the garbage collector. Their parts referred back to the log, so the log
    stayed in memory until a collection.
    """
    store.append("x")
    other = store.folder.create_log("kept", 0, topic_id=None, config=store.config, now_ms=store.now)
    gc.collect()
    gc.disable()
    try:
        store.folder.delete_log("t", 0).run()
        folders = {part.directory for part in gc.get_objects() if type(part) in (Log, LogState)}
    finally:
        gc.enable()
    assert other.directory in folders
    assert store.log_path not in folders


def test_a_log_deleted_in_the_middle_of_a_flush_is_not_flushing_any_more(store: Any) -> None:
    """Flushes of deleted logs end. A move waits for the log's flush, and that of a
    deleted log never ended.
    """
    store.append("x")
    deleted = store.log
    flush = deleted.flusher.start_flush()
    assert deleted.flusher.is_flushing
    store.folder.delete_log("t", 0)
    flush.run()
    deleted.flusher.finish_flush(flush)
    assert not deleted.flusher.is_flushing
    assert store.folder.failure is None


def test_a_deleted_log_touches_nothing_any_more(store: Any, batch: Any) -> None:
    """Deleted logs refuse every operation and leave the log directory online. Retention met a log deleted a
    moment before, found no file, and the directory went offline.
    """
    store.configure(segment_bytes=200, retention_ms=0)
    for _ in range(3):
        store.append("x")
    deleted = store.log
    store.folder.delete_log("t", 0)
    store.folder.create_log("t", 0, topic_id=None, config=store.config, now_ms=store.now)
    store.append("new")
    calls: list[Callable[[], object]] = [
        lambda: deleted.shortening.apply_retention(store.now + 1),
        lambda: deleted.reader.read(0, 100),
        deleted.flusher.start_flush,
        lambda: deleted.writer.append(batch("old"), 0, store.now),
    ]
    for call in calls:
        with pytest.raises(KafkaError, match="t-0 was deleted"):
            call()
    assert store.folder.failure is None
    assert store.values() == ["new"]
