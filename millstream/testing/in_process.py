"""A test's broker in the test's own process: a thread with its own event loop."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import threading
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from kafka_client.errors import ConfigError, MillstreamError
from logd.storage.disk import remove_folder
from millstream.testing.clock import ClockedLoop
from millstream.testing.errors import BrokerError
from millstream.testing.host import SECONDS_MAX
from millstream.testing.served import Served

T = TypeVar("T")


class ThreadHost:
    """A host like `ProcessHost`, but without `kill`; its output goes to Python's logging."""

    in_process = True

    def __init__(self, folder: Path, config: Mapping[str, object], *, keeps: bool) -> None:
        self.folder = folder
        self.port = 0
        self._keeps = keeps
        self._config = config
        self._thread: threading.Thread | None = None
        self._loop: ClockedLoop
        self._served: Served
        self._going = threading.Event()

    @property
    def is_running(self) -> bool:
        """True if the thread runs."""
        return self._thread is not None

    @property
    def log(self) -> str:
        """Always empty: see logging."""
        return ""

    def start(self) -> None:
        """Start the broker and wait until it serves. Raises BrokerError if it does not start."""
        self._loop = ClockedLoop()
        self._served = Served(self._loop, self.folder, self._config)
        self._served.port = self.port
        self._going.set()
        if not self._keeps:
            atexit.register(self._remove)
        self._thread = threading.Thread(target=self._loop.run_forever, name="millstream", daemon=True)
        self._thread.start()
        try:
            self.port = self._run(self._served.start())
        except BrokerError:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the broker cleanly and remove its folder unless `keeps`. A second call does nothing."""
        if self._thread is None:
            return
        self.resume()
        try:
            self._run(self._served.stop())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._thread = None
            self._loop.close()
            if not self._keeps:
                atexit.unregister(self._remove)
                self._remove()

    def _remove(self) -> None:
        remove_folder(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """Raise BrokerError: a thread cannot be killed."""
        raise BrokerError("a broker in the test's own process cannot be killed: use Broker(in_process=False)")

    def pause(self) -> None:
        """Block the event loop: connections stay open, nothing is answered."""
        self._going.clear()
        self._loop.call_soon_threadsafe(self._going.wait)

    def resume(self) -> None:
        """Unblock the event loop."""
        self._going.set()

    def ask(self, command: str, **arguments: object) -> Any:
        """Carry out a command and return the result.

        Raises BrokerError if it fails or the broker does not run.
        """
        if self._thread is None:
            raise BrokerError(f"the broker does not run and cannot be asked to {command}: call start() first")
        if not self._going.is_set():
            raise BrokerError(f"the broker is paused and cannot {command}: call resume() first")
        return self._run(self._served.do(command, arguments))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(SECONDS_MAX)
        except concurrent.futures.TimeoutError:
            raise BrokerError(f"the broker did not answer in {SECONDS_MAX:.0f} s") from None
        except ConfigError as error:
            raise BrokerError(f"{error.key}={error.value!s} is not allowed: {error.allowed}") from error
        except (MillstreamError, OSError) as error:
            raise BrokerError(str(error)) from error
