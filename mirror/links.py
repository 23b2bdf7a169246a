"""Several flows in one process: a flow that fails is opened again while the others go on."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Any

from kafka_client import Backoff
from kafka_client.errors import AuthenticationFailed, ConfigError, MillstreamError
from kafka_client.metrics.metrics import Metrics
from mirror.config import LinkSettings
from mirror.link import Link
from mirror.stalls import STALL_SECONDS

log = logging.getLogger(__name__)

RETRY_FIRST_SECONDS = 1.0
RETRY_MAX_SECONDS = 60.0


class SupervisedLink:
    """A flow that is opened again after every failure until `stop`.

    `link` is the link that runs or ran last, None before the first. `failure` is the last error, None while a
    link runs. `metrics` is the registry all its links report to, by default a new one.
    """

    def __init__(self, settings: LinkSettings, *, metrics: Metrics | None = None) -> None:
        self.settings = settings
        self.metrics = metrics or Metrics()
        self.link: Link | None = None
        self.failure: Exception | None = None
        self.opened_at = 0.0
        """When `link` was opened, by the monotonic clock."""
        self._stopping = asyncio.Event()

    async def run(self, *, until_caught_up: bool = False) -> None:
        """Run until `stop`. With `until_caught_up`, run until the first `Link.run` ends.

        Errors of the flow are not raised: see `failure`. An invalid setting ends the flow, and so do
        credentials that are refused before it first ran.
        """
        backoff = Backoff(RETRY_FIRST_SECONDS, RETRY_MAX_SECONDS)
        while not self._stopping.is_set():
            try:
                await self._run_once(until_caught_up)
                return
            except ConfigError as e:
                self.failure = e
                log.error("%s ends: %s", self.settings.name, e)
                return
            except MillstreamError as e:
                self.failure = e
                if isinstance(e, AuthenticationFailed) and self.link is None:
                    log.error("%s ends: %s", self.settings.name, e)
                    return
                reason: str | Exception = e
            except Exception as e:  # a bug in one flow must not end the others
                self.failure = e
                log.exception("%s failed unexpectedly", self.settings.name)
                reason = repr(e)
            if until_caught_up:
                log.error("%s failed: %s: %s", self.settings.name, type(self.failure).__name__, reason)
                return
            if self.link is not None:
                backoff.reset()
            pause = backoff.next()
            log.warning("%s is down, again in %.0f s: %s", self.settings.name, pause, reason)
            await self._wait(pause)

    def stop(self) -> None:
        """End `run` once the target has acknowledged everything sent."""
        self._stopping.set()
        if self.link is not None:
            self.link.stop()

    @property
    def exit_status(self) -> int:
        """0 if every partition was copied, 2 if a setting is invalid, else 1.

        It is 1 if the flow was down, or a partition was in quarantine, stood still or had an unknown lag.
        """
        if isinstance(self.failure, ConfigError):
            return 2
        if self.failure is not None or self.link is None:
            return 1
        progress = self.link.progress
        return 1 if self.link.quarantined or progress.stalls.stalled or progress.silent else 0

    async def _run_once(self, until_caught_up: bool) -> None:
        self.link = None
        link = Link(self.settings, metrics=self.metrics)
        opening = asyncio.create_task(link.open())
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await self._wait_for_either(link, opening, stopping)
        finally:
            stopping.cancel()
            if not opening.done():
                opening.cancel()  # it may be waiting for an unreachable cluster
                await asyncio.gather(opening, return_exceptions=True)
        if opening.cancelled():
            return
        opening.result()
        self.link, self.failure, self.opened_at = link, None, time.monotonic()
        try:
            if self._stopping.is_set():
                link.stop()
            await link.run(until_caught_up=until_caught_up)
        finally:
            await link.close()

    async def _wait_for_either(self, link: Link, *tasks: asyncio.Task[Any]) -> None:
        """Wait for the first task to end; log every `STALL_SECONDS` what the link's opening waits for."""
        started = time.monotonic()
        while not any(task.done() for task in tasks):
            done, _ = await asyncio.wait(tasks, timeout=STALL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                waited = time.monotonic() - started
                log.warning("%s is not open after %.0f s: %s", self.settings.name, waited, link.step)

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            pass


async def run_links(links: Sequence[SupervisedLink], *, until_caught_up: bool) -> int:
    """Run all flows until they end. Return the worst exit status."""
    async with asyncio.TaskGroup() as group:
        for link in links:
            group.create_task(link.run(until_caught_up=until_caught_up))
    return max(link.exit_status for link in links)
