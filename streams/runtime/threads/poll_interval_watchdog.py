"""The watchdog of hanging user code: the member leaves the group after `max.poll.interval.ms`.

Heartbeats go on while the worker works, so the group would wait for ever. A member whose worker has had one
job for longer than the limit leaves, and other members take its tasks over. If the job ends after all, the
loop notices that it is no member, drops its tasks uncommitted, and joins again.
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
"""How often the worker is checked within the limit."""


async def watch_worker(
    worker: Worker,
    coroutines: LoopCoroutines,
    member: GroupMember,
    *,
    limit_ms: int,
    nodes: Collection[str],
) -> None:
    """Leave the group if a job or a coroutine takes longer than the limit. Runs until cancelled.

    ``nodes``: the names of the topology's nodes, one of which the log message blames. A coroutine counts
    because no commit can be made before its end.
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
        worker.interrupted.set()  # The worker may wait for that coroutine.


def hanging(
    worker: Worker, coroutines: LoopCoroutines, *, limit_ms: int, nodes: Collection[str]
) -> str | None:
    """Return the node and the line that take longer than the limit, None if there is none.

    If the worker waits for a coroutine, they are the coroutine's: the worker's own stack would only show the
    wait.
    """
    if coroutines.oldest_call_seconds * 1000 >= limit_ms:
        return coroutines.where_it_hangs()
    if worker.oldest_job_seconds * 1000 < limit_ms:
        return None
    if coroutines.is_waited_for:
        return coroutines.where_it_hangs()
    return where_it_hangs(worker.thread_id, nodes)


def where_it_hangs(thread_id: int, nodes: Collection[str]) -> str:
    """Return the node and the line of the program that a thread executes."""
    frame = sys._current_frames().get(thread_id)
    if frame is None:
        return "the worker"
    stack = traceback.extract_stack(frame)
    node = next((each.name for each in reversed(stack) if each.name in nodes), "")
    line = f"{stack[-1].filename}, line {stack[-1].lineno}, in {stack[-1].name}"
    return f"node {node} ({line})" if node else f"the worker ({line})"
