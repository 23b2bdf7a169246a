"""A leader in a process of its own, for a test to stop: it asks its lease before each acknowledgement.

    python -m tests.logd.metadata.zookeeper.acknowledging CONNECT SESSION_TIMEOUT_MS

A thread acknowledges without a pause, so that it is the first to run after SIGCONT. `/acknowledged` says at
the end how often the lease was held right after a time in which the session must have expired.
"""

from __future__ import annotations

import asyncio
import sys
import threading

from logd.metadata.zookeeper.session.clock import boottime
from logd.metadata.zookeeper.session.session import Event, Session
from logd.metadata.zookeeper.session.settings import ZooKeeperSettings


class Leader:
    def __init__(self, session: Session) -> None:
        self.lease = session.lease
        self.wrong = 0
        self.ending = threading.Event()

    def acknowledge(self) -> None:
        """Acknowledge as a leader does: read the clock, check the lease, then write."""
        before = boottime()
        session_seconds = int(sys.argv[2]) / 1000
        while not self.ending.is_set():
            now = boottime()
            was_stopped = now - before > session_seconds
            if self.lease.is_held(now) and was_stopped:
                self.wrong += 1
            before = now


async def main() -> None:
    session = Session(ZooKeeperSettings.of(sys.argv[1], session_timeout_ms=int(sys.argv[2])))
    await session.open()
    await session.create("/leader", ephemeral=True)
    leader = Leader(session)
    established = asyncio.Event()
    session.add_listener(lambda event: established.set() if event is Event.ESTABLISHED else None)
    thread = threading.Thread(target=leader.acknowledge)
    thread.start()
    print("registered", flush=True)
    try:
        await established.wait()
    finally:
        leader.ending.set()
        thread.join()
    await session.create("/acknowledged", str(leader.wrong).encode())
    await session.close()
    print("established again", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
