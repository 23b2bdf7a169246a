"""Tasks with so many stores that one note about all of them would be too long for a broker to take.

A broker bounds the metadata of each committed offset, 4,096 characters unless set. What one refuses must end
the application, and leave nothing behind that a later start would take for a commit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_client import Client
from streams import KafkaStreams, Materialized, StreamsBuilder, StreamsError, TimeWindows, Topology
from streams.errors import CommitRefused
from tests.faults.streams.audit import read
from tests.streams.support.running import NewName, make_topics, produce, run, start
from tests.support.logd_process import LogdProcess

GUARANTEES = ["at_least_once", "exactly_once_v2"]
STORES = 200
ONE: tuple[bytes, bytes] = (b"k", bytes(7) + b"\1")


def counting(*inputs: str, to: str, stores: int) -> Topology:
    """Count the records of these topics in as many stores of windows, in one sub-topology."""
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    groups = builder.stream(list(inputs)).group_by_key()
    for number in range(stores):
        store = Materialized(
            name=f"page-views-per-user-by-window-of-{number:03}-minutes",
            caching=False,
            persistent=False,
        )
        counts = groups.windowed_by(TimeWindows(60_000 * (number + 1))).count(store=store)
        counts.to_stream(key=lambda window, _: window.key).to(to)
    return builder.build()


def counts(app: KafkaStreams) -> set[int]:
    """Return the distinct counts that all stores have of the one key."""
    windows_by_store: Any = [
        dict(view.fetch("k", 0, 10))  # type: ignore[attr-defined]
        for name in app.topology.stores
        for view in app.stores(name)
    ]
    return {count for windows in windows_by_store for count in windows.values()}


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_task_with_hundreds_of_stores_commits(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, guarantee: str
) -> None:
    name = new_name("many")
    topology = counting(f"{name}-in", to=f"{name}-out", stores=STORES)

    async def written() -> int:
        async with Client(logd.bootstrap) as client:
            (rows,) = await read(client, f"{name}-out", 1)
        return len(rows)

    async def case() -> None:
        await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
        await produce(logd.bootstrap, f"{name}-in", ONE, ONE)
        async with start(topology, logd.bootstrap, name, tmp_path, processing_guarantee=guarantee) as app:
            await app.wait_until_caught_up()
            assert counts(app) == {2}
            assert await written() == 2 * STORES
        async with start(topology, logd.bootstrap, name, tmp_path, processing_guarantee=guarantee) as app:
            await app.wait_until_caught_up()
            assert await written() == 2 * STORES, "a restart writes nothing again"
            assert counts(app) == {2}
            await produce(logd.bootstrap, f"{name}-in", ONE)
            await app.wait_until_caught_up()
            assert counts(app) == {3}
            assert await written() == 3 * STORES

    run(case, 180)


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("limit", [10, 60])
def test_a_note_that_the_broker_does_not_take_ends_the_application(
    tmp_path: Path, guarantee: str, limit: int
) -> None:
    """A commit's metadata over the broker's limit ends the application. A limit of 60 accepts the inputs'
    metadata and refuses the changelogs'.
    """
    topology = counting("one", "two", to="out", stores=2)
    settings: dict[str, Any] = {"processing_guarantee": guarantee, "group_instance_id": "a"}

    async def refused() -> None:
        await make_topics(logd.bootstrap, one=1, two=1, out=1)
        for topic in ("one", "two"):
            await produce(logd.bootstrap, topic, ONE)
        with pytest.raises(StreamsError) as caught:
            async with start(topology, logd.bootstrap, "app", tmp_path, **settings) as app:
                await app.wait_until_caught_up()
        refusal = caught.value.__cause__ or caught.value
        assert isinstance(refusal, CommitRefused)
        assert (refusal.task, refusal.limit, refusal.setting) == ("0_0", limit, "offset.metadata.max.bytes")
        assert refusal.size > limit
        assert f"which is {limit}; raise offset.metadata.max.bytes" in str(refusal)

    async def raised() -> None:
        async with start(topology, logd.bootstrap, "app", tmp_path, **settings) as app:
            await app.wait_until_caught_up()
            assert counts(app) == {2}

    with LogdProcess(tmp_path / "logd", {"offset.metadata.max.bytes": limit}) as logd:
        run(refused)
        logd.stop()
        del logd.overrides["offset.metadata.max.bytes"]
        logd.start()
        run(raised)
