"""Changelogs that are not what they were: the application says what happened, and how to go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_client import Admin, Client, NewTopic
from streams import KafkaStreams, StreamsBuilder, StreamsError, TimeWindows
from tests.streams.support.running import NewName, make_topics, produce, start
from tests.support import depth
from tests.support.logd_process import LogdProcess

GUARANTEES = ["at_least_once", pytest.param("exactly_once_v2", marks=depth.deep)]


def counting(
    logd: LogdProcess,
    name: str,
    folder: Path,
    *,
    windowed: bool = False,
    mapped: bool = False,
    **settings: Any,
) -> KafkaStreams:
    """``mapped``: the store is in the second sub-topology, behind a repartition topic."""
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    stream = builder.stream(f"{name}-in")
    if mapped:
        stream = stream.map(lambda key, value: (key, value))
    grouped = stream.group_by_key()
    (grouped.windowed_by(TimeWindows(10)) if windowed else grouped).count(store="counts")
    return start(builder.build(), logd.bootstrap, name, folder, **settings)


async def count_some(logd: LogdProcess, name: str, folder: Path, **settings: Any) -> dict[str, int]:
    """Send one more record of each key, and return the counts after it."""
    await produce(logd.bootstrap, f"{name}-in", (b"the-letter-a", bytes(8)), (b"the-letter-b", bytes(8)))
    async with counting(logd, name, folder, **settings) as app:
        await app.wait_until_caught_up()
        return dict(app.stores("counts")[0].all())  # type: ignore[attr-defined]


async def delete(logd: LogdProcess, topic: str) -> None:
    async with Client(logd.bootstrap) as client:
        await Admin(client).delete_topics([topic])


@depth.deep
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
async def test_one_that_is_deleted_under_a_running_application(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, guarantee: str
) -> None:
    """A deleted changelog is created again, empty. The next restore finds that it is another one."""
    name = new_name("gone")
    settings: dict[str, Any] = {"processing_guarantee": guarantee}
    await make_topics(logd.bootstrap, **{f"{name}-in": 1})
    await count_some(logd, name, tmp_path, **settings)
    with pytest.raises(StreamsError, match=r"counts-changelog-0 ends at 0, but 2 was .*; reset the app"):
        async with counting(logd, name, tmp_path, **settings) as app:
            await app.wait_until_caught_up()
            await delete(logd, f"{name}-counts-changelog")
            await produce(logd.bootstrap, f"{name}-in", (b"the-letter-a", bytes(8)))
            await app.wait_ended()


@depth.deep
@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("made_anew", [False, True])
@pytest.mark.parametrize("disk", ["kept", "lost"])
async def test_one_that_is_gone_at_a_start(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, guarantee: str, made_anew: bool, disk: str
) -> None:
    name = new_name("lost")
    settings: dict[str, Any] = {"processing_guarantee": guarantee}
    topic = f"{name}-counts-changelog"
    await make_topics(logd.bootstrap, **{f"{name}-in": 1})
    await count_some(logd, name, tmp_path, **settings)
    await delete(logd, topic)
    if made_anew:
        async with Client(logd.bootstrap) as client:
            await Admin(client).create_topics([NewTopic(topic, 1, 1, {"cleanup.policy": "compact"})])
        await produce(logd.bootstrap, topic, (b"x", bytes(8)))
    folder = tmp_path if disk == "kept" else tmp_path / "elsewhere"
    problem = rf"{topic}-0 ends at {int(made_anew)}, but 2 was committed: .*; reset the application"
    with pytest.raises(StreamsError, match=problem):
        await count_some(logd, name, folder, **settings)


async def test_joined_topics_of_different_numbers_of_partitions(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name = new_name("uneven")
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    table = builder.table(f"{name}-two")
    builder.stream(f"{name}-three").join(table, lambda value, other: value).foreach(lambda key, value: None)
    await make_topics(logd.bootstrap, **{f"{name}-two": 2, f"{name}-three": 3})
    problem = rf"'{name}-two' has 2, '{name}-three' has 3; repartition\(\) one of the streams, or make"
    with pytest.raises(StreamsError, match=problem):
        await start(builder.build(), logd.bootstrap, name, tmp_path).start()


async def test_one_with_other_partitions_than_the_inputs(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name = new_name("three")
    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-counts-changelog": 3})
    problem = r"counts-changelog' has 3 partitions, the inputs need 1; reset the application"
    with pytest.raises(StreamsError, match=problem):
        await count_some(logd, name, tmp_path)


@depth.deep
@pytest.mark.parametrize("disk", ["kept", "lost"])
async def test_one_of_another_kind_of_store(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, disk: str
) -> None:
    """The story of the bug: keys that were long enough were read as those of windows of some time. The
    windows expired, and the keys were deleted from the changelog. The earlier topology still has all its
    keys.
    """
    name = new_name("kind")
    folder = tmp_path if disk == "kept" else tmp_path / "elsewhere"
    await make_topics(logd.bootstrap, **{f"{name}-in": 1})
    await count_some(logd, name, tmp_path)
    problem = (
        f"store 'counts' is of kind window, but its changelog {name}-counts-changelog is of an earlier "
        "topology's of kind key_value: give the store another name, or reset the application"
    )
    with pytest.raises(StreamsError, match=problem):
        await count_some(logd, name, folder, windowed=True)
    assert await count_some(logd, name, folder) == {"the-letter-a": 3, "the-letter-b": 3}


async def test_a_store_whose_sub_topology_has_another_number(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    """There and back again, over one state folder: the first task's folder has what was before."""
    name = new_name("moved")
    await make_topics(logd.bootstrap, **{f"{name}-in": 1})
    for count, mapped in enumerate([False, True, True, False], start=1):
        counts = await count_some(logd, name, tmp_path, mapped=mapped)
        assert counts == {"the-letter-a": count, "the-letter-b": count}
    assert (tmp_path / name / "0_0" / "rocksdb" / "counts").exists()
    assert (tmp_path / name / "1_0" / "rocksdb" / "counts").exists()
