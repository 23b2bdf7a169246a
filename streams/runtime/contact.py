"""Log messages when no broker answers, and when one answers again: the client itself retries silently."""

from __future__ import annotations

import asyncio
import logging

from kafka_client import Client
from kafka_client.errors import ConnectionClosed, MillstreamError, RequestTimedOut

log = logging.getLogger(__name__)

ANSWER_MS = 3000
"""How long a connection may take before the log says that no broker answers."""
LOOK_MS = 1000
"""How often the connection is checked; a check of an open connection costs nothing."""


async def say_if_nobody_answers(client: Client, application_id: str) -> None:
    """Try to connect once, and log the reason if that fails. Later requests retry."""
    if why := await _why_nobody_answers(client):
        log.warning("%s: %s; trying again for %g s", application_id, why, client.request_timeout_ms / 1000)


async def watch_brokers(client: Client, application_id: str) -> None:
    """Log when no broker can be reached any more, and when one can again, until cancelled."""
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
    """Return why there is no connection, or "" if there is one."""
    try:
        async with asyncio.timeout(ANSWER_MS / 1000):
            await client.connection()
    except TimeoutError:
        return f"no broker answers within {ANSWER_MS} ms"
    except (ConnectionClosed, RequestTimedOut) as error:
        return str(error)
    except MillstreamError:
        pass  # A broker answered; later requests raise the error.
    return ""
