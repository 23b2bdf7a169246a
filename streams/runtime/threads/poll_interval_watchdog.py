"""Code of the user that hangs costs the membership, after a stated limit (`max.poll.interval.ms`).

Heartbeats go on while the worker works, so the group would wait for ever. A member whose worker has been at
one job for longer than the limit leaves, and the others take its tasks over. Once the job ends after all,
the loop finds that it is no member, drops its tasks uncommitted, and joins anew.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import traceback
from collections.abc import Collection

from kafka_client import GroupMember
from streams.runtime.threads.coroutines import LoopCoroutines
from streams.runtime.threads.worker import Worker

log = logging.getLogger(__name__)

LOOKS = 10
"""So often within the limit the worker is looked at."""


async def watch_worker(
    worker: Worker,
    coroutines: LoopCoroutines,
    member: GroupMember,
    *,
    limit_ms: int,
    nodes: Collection[str],
) -> None:
    """Until cancelled. ``nodes``: names of the topology's, one of which is to be blamed.

    A coroutine that takes longer than the limit hangs as well: no commit can be made before it is over.
    """
    while True:
        await asyncio.sleep(limit_ms / LOOKS / 1000)
        if not member.member_id:
            continue
        where = hanging(worker, coroutines, limit_ms=limit_ms, nodes=nodes)
        if where is None:
            continue
        log.error(
            "%s has not come back within max.poll.interval.ms (%d ms): leaving the group, others take the "
            "tasks over. Make it faster, or the limit longer",
            where,
            limit_ms,
        )
        await member.step_out(f"{where} exceeded max.poll.interval.ms")
        worker.interrupted.set()  # It may wait for that coroutine.


def hanging(
    worker: Worker, coroutines: LoopCoroutines, *, limit_ms: int, nodes: Collection[str]
) -> str | None:
    """The node and the line that have taken longer than the limit, None if nothing has. Where the worker
    waits for a coroutine it is that one's: its own stack would only name where threads wait.
    """
    if coroutines.oldest_call_seconds * 1000 >= limit_ms:
        return coroutines.where_it_hangs()
    if worker.oldest_job_seconds * 1000 < limit_ms:
        return None
    if coroutines.is_waited_for:
        return coroutines.where_it_hangs()
    return where_it_hangs(worker.thread_id, nodes)


def where_it_hangs(thread_id: int, nodes: Collection[str]) -> str:
    """The node and the line of the program at which a thread is."""
    frame = sys._current_frames().get(thread_id)
    if frame is None:
        return "the worker"
    stack = traceback.extract_stack(frame)
    node = next((each.name for each in reversed(stack) if each.name in nodes), "")
    line = f"{stack[-1].filename}, line {stack[-1].lineno}, in {stack[-1].name}"
    return f"node {node} ({line})" if node else f"the worker ({line})"
