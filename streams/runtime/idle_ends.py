"""Asking the brokers where idle inputs end, before windows are closed for want of records.

It is never in the way: the question is asked beside the tasks, and one that nobody answers is asked again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from logd.client import Admin, Client
from logd.errors import MillstreamError
from streams.runtime.idle import IdleWatch

log = logging.getLogger(__name__)


class IdleEnds:
    """Asks for all tasks that are due, with one question under way."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._asking: asyncio.Task[None] | None = None

    def ask(self, watches: Iterable[IdleWatch]) -> None:
        """Ask for those that are due, unless there is a question under way."""
        due = [watch for watch in watches if watch.is_due and not watch.is_confirmed]
        if due and (self._asking is None or self._asking.done()):
            self._asking = asyncio.create_task(self._ask(due), name="ends-of-idle-inputs")

    async def _ask(self, watches: list[IdleWatch]) -> None:
        wanted = {tp: "latest" for watch in watches for tp in watch.inputs}
        try:
            found = await Admin(self._client).list_offsets(wanted)
        except MillstreamError as error:
            log.warning("windows on idle inputs stay open: where the inputs end is not known: %s", error)
            return
        ends = {tp: each.offset for tp, each in found.items()}
        for watch in watches:
            watch.heard(ends)

    async def close(self) -> None:
        """Break off a question that is under way."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])
