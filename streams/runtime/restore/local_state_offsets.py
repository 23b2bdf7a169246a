"""The changelog offsets of the state on this instance's disk, for the report to the group's leader."""

from __future__ import annotations

import logging

from streams.errors import StateError
from streams.runtime.folder import StateFolder
from streams.runtime.task_id import TaskId
from streams.runtime.threads.worker import Worker
from streams.state import open_store
from streams.topology import Topology

log = logging.getLogger(__name__)


def stored_offsets(folder: StateFolder, topology: Topology) -> dict[TaskId, int]:
    """Return the sum of the changelog offsets of each task with state of this topology's stores."""
    sums = {}
    for id in folder.stored_tasks():
        offsets = folder.offsets(id)
        if offsets is not None and id.subtopology < len(topology.subtopologies):
            stores = topology.subtopologies[id.subtopology].stores
            sums[id] = sum(offset for name, offset in offsets.items() if name in stores)
    return sums


async def look_after_a_kill(folder: StateFolder, topology: Topology, restorer: Worker) -> None:
    """Open the stores that were not closed, to write down their changelog offsets."""
    for id in folder.stored_tasks():
        if folder.offsets(id) is None and id.subtopology < len(topology.subtopologies):
            await restorer.run(_look, id, folder, topology)


def _look(id: TaskId, folder: StateFolder, topology: Topology) -> None:
    offsets: dict[str, int] = {}
    for name in topology.subtopologies[id.subtopology].stores:
        spec = topology.stores[name]
        if spec.persistent and spec.is_restored and (folder.task(id) / name).exists():
            try:
                store = open_store(spec, folder.task(id))
            except StateError as error:
                log.warning("%s", error)  # The error is raised if the task is opened here later.
                continue
            offsets[name] = store.backend.checkpoint or 0
            store.close()
    folder.noted(id, offsets)
