"""Finding out what fetchers and producers must know before they can go on: leaders, offsets, producer ids."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NoReturn

from kafka_client.cluster.cluster import Client, is_retriable
from kafka_client.errors import MillstreamError


async def look_up_forever(
    client: Client,
    wanted: asyncio.Event,
    attempt: Callable[[], Awaitable[None]],
    *,
    remains: Callable[[], bool],
    give_up: Callable[[MillstreamError], None],
) -> NoReturn:
    """Attempt whenever `wanted` is set, with a backoff as long as something remains; cancel it to end.

    An error that asking again will not mend goes to `give_up`; so does every error once the client is closed.
    """
    backoff = client.backoff()
    while True:
        await wanted.wait()
        wanted.clear()
        try:
            await attempt()
        except MillstreamError as error:
            if not is_retriable(error) or client.closed:
                give_up(error)
            client.invalidate_metadata()
        if remains():
            wanted.set()
            await asyncio.sleep(backoff.next())
        else:
            backoff.reset()
