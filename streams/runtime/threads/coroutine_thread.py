"""`CoroutineThread`: runs each coroutine to its end before the caller goes on, in a thread with a loop.

For `TopologyTestDriver`: results come as if the function were no coroutine, also in a test that has a running
event loop itself. Waits between attempts are left out.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Iterable
from typing import Any

from streams.processors.coroutines import Call, Context
from streams.runtime.threads.contexts import Contexts


class CoroutineThread:
    """The thread is there from the first call on; `close` ends it."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._contexts: Contexts | None = None

    def start(self, call: Call, over: deque[Call]) -> None:
        """Run it to its end."""
        asyncio.run_coroutine_threadsafe(self._run(call), self._running_loop()).result()
        over.append(call)

    def wait(self, over: deque[Call]) -> None:
        """Return at once: a call is over when `start` returns."""
        assert over, "every call is over when it has been started"

    def give_up(self, calls: Iterable[Call]) -> None:
        """Do nothing: no call is running."""

    async def entered(self, node: str, context: Context) -> Any:
        """Enter the node's context at the first call, and return its value. `close` leaves the context."""
        if self._contexts is None:
            self._contexts = Contexts()
        return await self._contexts.entered(node, context)

    async def sleep(self, seconds: float) -> None:
        """Return at once."""

    def close(self) -> None:
        """Leave the contexts and end the thread."""
        loop, thread, self._loop = self._loop, self._thread, None
        if loop is None or thread is None:
            return
        try:
            if self._contexts is not None:
                asyncio.run_coroutine_threadsafe(self._contexts.close(), loop).result()
            asyncio.run_coroutine_threadsafe(loop.shutdown_asyncgens(), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def _run(self, call: Call) -> None:
        try:
            call.result = await call.work()
        except Exception as error:
            call.error = error
        call.is_over = True

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._loop.run_forever, name="streams-coroutines", daemon=True
            )
            self._thread.start()
        return self._loop
