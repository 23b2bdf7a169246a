"""How far the state is that lies on this instance's disk: what the group's leader is told of it."""

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
    """Of each task that left state of this topology's stores: its changelogs' offsets, added up."""
    found = {}
    for id in folder.stored_tasks():
        known = folder.offsets(id)
        if known is not None and id.subtopology < len(topology.subtopologies):
            stores = topology.subtopologies[id.subtopology].stores
            found[id] = sum(offset for name, offset in known.items() if name in stores)
    return found


async def look_after_a_kill(folder: StateFolder, topology: Topology, restorer: Worker) -> None:
    """Open the stores of tasks that nobody closed, to note what the disk has of them."""
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
                log.warning("%s", error)  # Said again, and raised, if the task comes to run here.
                continue
            offsets[name] = store.backend.checkpoint or 0
            store.close()
    folder.noted(id, offsets)
