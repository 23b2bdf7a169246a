"""Futures that nobody may wait for."""

from __future__ import annotations

import asyncio
from typing import Any


def retrieve_failure(future: asyncio.Future[Any]) -> None:
    """Retrieve a future's exception, so that asyncio does not log it: it is reported elsewhere."""
    if not future.cancelled():
        future.exception()
