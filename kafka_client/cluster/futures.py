"""Futures that nobody may wait for."""

from __future__ import annotations

import asyncio
from typing import Any


def retrieve_failure(future: asyncio.Future[Any]) -> None:
    """Done-callback of a future whose failure is told elsewhere, too: asyncio need not complain of it."""
    if not future.cancelled():
        future.exception()
