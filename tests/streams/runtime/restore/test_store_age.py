"""The story of the bug: an instance went away and left its stores on disk. Another one deleted a key, and in
time compaction took the key's tombstone out of the changelog. The first instance came back, took up its store
where its checkpoint was, and had the key again.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Admin, BatchProducer, Client, ConfigOp, NewTopic
from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from streams import Materialized, StreamsBuilder, Topology
from streams.runtime.restore import restore
from streams.runtime.restore.restore import restore_stores
from streams.runtime.threads.worker import Worker
from streams.serdes import Long, String
from streams.state import KeyValueStore, StoreSpec
from streams.state.rocks import RocksBackend
from tests.streams.runtime.task.test_task import A, give, make
from tests.streams.support.counting import read_last
from tests.streams.support.running import NewName, make_topics, produce, run, start
from tests.support.depth import deep, sample
from tests.support.logd_process import LogdProcess

NOW = 1_700_000_000_000
DAY = 86_400_000


@deep
def test_a_key_deleted_while_an_instance_was_away_stays_deleted(tmp_path: Path) -> None:
    compacted = {
        "segment.bytes": "30000",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "0",
    }
    quick = {
        "log.cleaner.backoff.ms": "20",
        "log.cleaner.dedupe.buffer.size": "2000000",
        "millstream.flush.interval.ms": "30",
        "group.initial.rebalance.delay.ms": "0",
    }

    def table() -> Topology:
        builder = StreamsBuilder(key_serde=str, value_serde=bytes)
        builder.table("in", store=Materialized(name="s", changelog_config=compacted))
        return builder.build()

    async def case(bootstrap: str) -> None:
        await make_topics(bootstrap, **{"in": 1})
        await produce(bootstrap, "in", (b"a", b"1"), (b"b", b"1"))
        async with start(table(), bootstrap, "app", tmp_path / "first") as app:
            await app.wait_until_caught_up()
        await produce(bootstrap, "in", (b"a", None))
        async with start(table(), bootstrap, "app", tmp_path / "second") as app:
            await app.wait_until_caught_up()
            while b"a" in await read_last(bootstrap, "app-s-changelog", partitions=1):
                await produce(bootstrap, "in", *((b"filler-%d" % n, bytes(1000)) for n in range(20)))
                await app.wait_until_caught_up()
        async with start(table(), bootstrap, "app", tmp_path / "first") as app:
            await app.wait_until_caught_up()
            keys = [key for key, _ in app.stores("s")[0].all()]  # type: ignore[attr-defined]
        assert "a" not in keys
        assert "b" in keys

    with LogdProcess(tmp_path / "logd", quick) as logd:
        run(lambda: case(logd.bootstrap))


# -- which local state is used


class Changelog:
    """A changelog of four records, and a store that has the first two of them and a key that is gone."""

    def __init__(self, logd: LogdProcess, name: str, folder: Path, **configs: str) -> None:
        self.tp = TopicPartition(name, 0)
        self._logd, self._configs, self._folder = logd, configs, folder
        self.worker = Worker()

    async def make(self) -> None:
        async with Client(self._logd.bootstrap) as client, BatchProducer(client) as producer:
            configs = {"cleanup.policy": "compact"} | self._configs
            await Admin(client).create_topics([NewTopic(self.tp.topic, 1, 1, configs)])
            records = [(5, key, bytes(8), ()) for key in (b"a", b"b", b"c", b"d")]
            for record in records:
                await (await producer.send(self.tp.topic, 0, [record]))

    async def leave_store(self, checkpoint: int, as_of: int | None) -> None:
        async with Client(self._logd.bootstrap) as client:
            topic = (await client.metadata([self.tp.topic])).topics[self.tp.topic]
        backend = RocksBackend(self._folder / "s")
        backend.wipe(topic.topic_id)
        backend.write([(key, bytes(16)) for key in (b"a", b"b", b"gone")], checkpoint, as_of)
        backend.close()

    async def restored(self, cut: int, now: int = NOW) -> tuple[set[str], int | None]:
        """Keys after a restore at a time, and the time noted with them."""
        spec = StoreSpec(name="s", kind="key_value", key_serde=String(), value_serde=Long())
        store: KeyValueStore[str, int] = KeyValueStore(spec, RocksBackend(self._folder / "s"))
        try:
            async with Client(self._logd.bootstrap) as client:
                stores: dict[TopicPartition, Any] = {self.tp: store}
                await restore_stores(client, stores, {"s": cut}, worker=self.worker, clock=lambda: now)
            assert store.backend.checkpoint == cut
            return {key for key, _ in store.all()}, store.backend.as_of
        finally:
            store.close()


OLD = {"a", "b", "c", "d", "gone"}
NEW = {"a", "b", "c", "d"}


@sample(3)
@pytest.mark.parametrize(
    ("retention", "as_of", "keys"),
    [
        (DAY, NOW - DAY // 2, OLD),
        (DAY, NOW - DAY + 60_000, NEW),  # clocks differ, and a restore takes time
        (DAY, NOW - DAY - 60_000, NEW),
        (2 * DAY, NOW - DAY - 60_000, OLD),
        (0, NOW - 1, NEW),
        (DAY, None, NEW),  # left by a version that did not note it
        (DAY, NOW + 60_000, NEW),  # a clock was set back
    ],
)
async def test_local_state_is_used_while_the_tombstones_are_there(
    logd: LogdProcess,
    tmp_path: Path,
    new_name: NewName,
    caplog: pytest.LogCaptureFixture,
    retention: int,
    as_of: int | None,
    keys: set[str],
) -> None:
    """The age of local state is compared with delete.retention.ms as the changelog is configured now."""
    changelog = Changelog(logd, new_name("age"), tmp_path, **{"delete.retention.ms": "7"})
    await changelog.make()
    async with Client(logd.bootstrap) as client:
        changes: dict[str, Any] = {"delete.retention.ms": (ConfigOp.SET, str(retention))}
        await Admin(client).incremental_alter_configs(changelog.tp.topic, changes)
    await changelog.leave_store(2, as_of)
    with caplog.at_level(logging.WARNING, "streams"):
        assert await changelog.restored(4) == (keys, NOW)
    assert ("restoring it all" in caplog.text) is (keys == NEW)
    assert await changelog.restored(4, NOW + 1) == (keys, NOW + 1)


async def test_state_that_lacks_nothing_is_used_however_old_it_is(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    """Nothing came since, so no key was deleted since: a restart after a long pause restores nothing."""
    changelog = Changelog(logd, new_name("idle"), tmp_path)
    await changelog.make()
    await changelog.leave_store(4, NOW - 100 * DAY)
    assert await changelog.restored(4) == ({"a", "b", "gone"}, NOW)


async def test_state_from_before_the_log_start_is_not_used(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, caplog: pytest.LogCaptureFixture
) -> None:
    changelog = Changelog(logd, new_name("start"), tmp_path, **{"cleanup.policy": "compact,delete"})
    await changelog.make()
    await changelog.leave_store(1, NOW)
    async with Client(logd.bootstrap) as client:
        await Admin(client).delete_records({changelog.tp: 2})
    assert await changelog.restored(4) == ({"c", "d"}, NOW)
    assert "its local state at 1 lies before the log start 2" in caplog.text


async def test_a_log_start_that_moves_during_a_restore_begins_it_anew(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If records that are still to be restored are deleted, the restore begins again. It ended the
    application.
    """
    changelog = Changelog(logd, new_name("moves"), tmp_path, **{"cleanup.policy": "compact,delete"})
    original = restore.read_changelogs

    async def read_late(client: Client, *rest: Any, **keywords: Any) -> None:
        await Admin(client).delete_records({changelog.tp: 3})
        await original(client, *rest, **keywords)

    await changelog.make()
    await changelog.leave_store(1, NOW)
    monkeypatch.setattr(restore, "read_changelogs", read_late)
    assert await changelog.restored(4) == ({"d"}, NOW)


async def test_a_retention_that_cannot_be_read_counts_as_none(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    changelog = Changelog(logd, new_name("secret"), tmp_path)

    async def refuse(self: Admin, name: str, **keywords: Any) -> Any:
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not yours")

    await changelog.make()
    await changelog.leave_store(2, NOW - 1)
    monkeypatch.setattr(Admin, "describe_configs", refuse)
    assert await changelog.restored(4) == (NEW, NOW)


def test_the_age_of_a_store_is_that_of_its_commit(tmp_path: Path) -> None:
    """Not of the moment it was written down: the process may have stood still since, while others went on."""
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("a").group_by_key().count(store="s")
    task, clock = make(builder)
    give(task, A, 1)
    task.process()
    flush = task.flush()
    clock.now += DAY
    task.written(flush, {"s": 1})
    assert task.stores["s"].backend.as_of == clock.now - DAY
