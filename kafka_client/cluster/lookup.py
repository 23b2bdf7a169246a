"""Lookups that fetchers and producers need before they can go on: leaders, offsets, producer ids."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NoReturn

from kafka_client.cluster.cluster import Client, is_retriable
from kafka_client.errors import MillstreamError


async def look_up_forever(
    client: Client,
    needed: asyncio.Event,
    attempt: Callable[[], Awaitable[None]],
    *,
    remains: Callable[[], bool],
    give_up: Callable[[MillstreamError], None],
) -> NoReturn:
    """Call `attempt` whenever `needed` is set, with a backoff while something remains; cancel it to end.

    Errors that a retry cannot fix are passed to `give_up`; so is every error once the client is closed.
    """
    backoff = client.backoff()
    while True:
        await needed.wait()
        needed.clear()
        try:
            await attempt()
        except MillstreamError as error:
            if not is_retriable(error) or client.closed:
                give_up(error)
            client.invalidate_metadata()
        if remains():
            needed.set()
            await asyncio.sleep(backoff.next())
        else:
            backoff.reset()
