"""Asking the brokers where idle inputs end, before windows are closed for want of records.

It is never in the way: the question is asked beside the tasks. If nobody answers, the inputs count as idle
from then on only, and it is asked again when the time is over once more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from logd.client import Admin, Client
from logd.errors import MillstreamError
from logd.topic_partition import TopicPartition
from streams.runtime.idle import IdleWatch

log = logging.getLogger(__name__)


class IdleEnds:
    """Asks for all tasks that are due, with one question under way."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._asking: asyncio.Task[None] | None = None

    @property
    def is_asking(self) -> bool:
        """Whether a question is under way."""
        return self._asking is not None and not self._asking.done()

    def ask(self, watches: Iterable[IdleWatch]) -> None:
        """Ask for those that are due, unless there is a question under way."""
        due = [watch for watch in watches if watch.is_due and not watch.is_confirmed]
        if due and not self.is_asking:
            self._asking = asyncio.create_task(self._ask(due), name="ends-of-idle-inputs")

    async def _ask(self, watches: list[IdleWatch]) -> None:
        wanted = {tp: "latest" for watch in watches for tp in watch.inputs}
        ends: dict[TopicPartition, int] = {}
        try:
            found = await Admin(self._client).list_offsets(wanted)
            ends = {tp: each.offset for tp, each in found.items()}
        except MillstreamError as error:
            log.warning("windows on idle inputs stay open, since nobody says where the inputs end: %s", error)
        for watch in watches:
            watch.heard(ends)

    async def close(self) -> None:
        """Break off a question that is under way."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])
