"""Facts about each task of an instance: tasks that run or are being restored, and standby tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from streams.runtime.loop import TaskLoop
from streams.runtime.opener import TaskOpener
from streams.runtime.restore.restore import StoreRestore
from streams.runtime.restore.restore_listener import progress
from streams.runtime.standbys import Standbys
from streams.runtime.task_id import TaskId
from streams.topology import Topology


def task_facts(
    topology: Topology, loop: TaskLoop, opener: TaskOpener, standbys: Standbys
) -> Iterator[dict[str, Any]]:
    """Yield the facts about each task, fit for JSON.

    They are name, sub-topology, partition, ``role`` (active, restoring, standby) and stores, and changelog
    records ``restored`` and offsets ``remaining``. An active task also has its stream time, ms.
    """
    for id, running in sorted(loop.tasks.items()):
        times = {"stream_time": running.task.stream_time}
        yield {**_of(topology, id, "active", ()), "restored": running.restored, **times}
    for id, restores in sorted(opener.restoring.items()):
        yield _of(topology, id, "restoring", restores.values())
    for id, standby in sorted(standbys.tasks.items()):
        yield _of(topology, id, "standby", standby.restores.values())


def _of(topology: Topology, id: TaskId, role: str, restores: Iterable[StoreRestore]) -> dict[str, Any]:
    return {
        "task": str(id),
        "subtopology": id.subtopology,
        "partition": id.partition,
        "role": role,
        "stores": topology.subtopologies[id.subtopology].stores,
        **progress(restores),
    }
