"""Saying at once that no broker answers, and that one does again: the client tries again without a word."""

from __future__ import annotations

import asyncio
import logging

from kafka_client import Client
from kafka_client.errors import ConnectionClosed, MillstreamError, RequestTimedOut

log = logging.getLogger(__name__)

ANSWER_MS = 3000
"""How long a connection may take before it is said that nobody answers."""
LOOK_MS = 1000
"""How often it is looked whether there is a connection; while there is one, that costs nothing."""


async def say_if_nobody_answers(client: Client, application_id: str) -> None:
    """Try to connect once, and log why nobody answers. What comes next tries again."""
    if why := await _why_nobody_answers(client):
        log.warning("%s: %s; trying again for %g s", application_id, why, client.request_timeout_ms / 1000)


async def watch_brokers(client: Client, application_id: str) -> None:
    """Until cancelled: log when no broker can be reached any more, and when one can again."""
    is_lost = False
    while True:
        await asyncio.sleep(LOOK_MS / 1000)
        why = await _why_nobody_answers(client)
        if why and not is_lost:
            log.warning("%s: %s; trying again", application_id, why)
        elif is_lost and not why:
            log.warning("%s: connected again", application_id)
        is_lost = bool(why)


async def _why_nobody_answers(client: Client) -> str:
    """The reason, or "" if there is a connection."""
    try:
        async with asyncio.timeout(ANSWER_MS / 1000):
            await client.connection()
    except TimeoutError:
        return f"no broker answers within {ANSWER_MS} ms"
    except (ConnectionClosed, RequestTimedOut) as error:
        return str(error)
    except MillstreamError:
        pass  # Somebody answered; whoever asks for more is told what is wrong.
    return ""
