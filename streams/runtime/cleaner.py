"""Deleting the state of tasks that have gone to other instances (Kafka Streams' state cleaner).

Every ``state.cleanup.delay.ms`` the folders of tasks are deleted that have not run here for that long. The
application's folder is locked (`folder`), so no other process uses it; the loop knows which tasks run.
"""

from __future__ import annotations

import asyncio
import logging

from streams.runtime.folder import StateFolder
from streams.runtime.loop import TaskLoop

log = logging.getLogger(__name__)


async def clean_state(loop: TaskLoop, folder: StateFolder, *, every_ms: int) -> None:
    """Delete idle tasks' folders every ``every_ms``, until cancelled."""
    while True:
        await asyncio.sleep(every_ms / 1000)
        try:
            removed = await loop.set_aside_idle_state(folder, every_ms)
            await asyncio.to_thread(folder.delete_set_aside)
        except Exception:
            log.exception(
                "%s: state of tasks that run elsewhere is not deleted, trying again later", folder.path
            )
        else:
            for id in removed:
                log.info(
                    "%s: state of task %s deleted, it has not run here for %d ms", folder.path, id, every_ms
                )
