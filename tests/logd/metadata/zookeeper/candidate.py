"""A broker in a process of its own that runs for controller, for a test to stop and to kill.

    python -m tests.logd.metadata.zookeeper.candidate CONNECT BROKER_ID SESSION_TIMEOUT_MS

While the broker believes to be the controller, it writes its epoch under `/written`, again and again. The
writes are fenced, and made without a look at the lease. They use a session of their own that lives on after
the other one has expired, so only the fence keeps the broker out. The broker creates `/moved/EPOCH` once the
fence has done so.
"""

from __future__ import annotations

import asyncio
import sys
import time

from logd.metadata.zookeeper.election import Candidate, Controller, Elected, fenced
from logd.metadata.zookeeper.errors import ControllerMoved
from logd.metadata.zookeeper.session.operations import Create
from logd.metadata.zookeeper.session.session import Session
from logd.metadata.zookeeper.session.settings import ZooKeeperSettings


async def write(session: Session, elected: Elected) -> None:
    """Write the epoch again and again until the fence refuses a write, then create `/moved/EPOCH`."""
    try:
        while True:
            await fenced(
                session, elected, [Create("/written/w_", str(elected.epoch).encode(), sequential=True)]
            )
    except ControllerMoved:
        await session.create(f"/moved/{elected.epoch}")


async def main() -> None:
    connect, broker_id, timeout_ms = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    session = await Session(ZooKeeperSettings.of(connect, session_timeout_ms=timeout_ms)).open()
    writing = await Session(ZooKeeperSettings.of(connect, session_timeout_ms=10_000)).open()
    writers: list[asyncio.Task[None]] = []

    def changed(controller: Controller) -> None:
        if controller.elected is not None:
            writers.append(asyncio.create_task(write(writing, controller.elected)))

    Candidate(session, broker_id, changed, lambda: int(time.time() * 1000)).start()
    print("standing", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
