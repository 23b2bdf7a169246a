"""The event loop of an application that brings none of its own: uvloop's where it is installed, as logd's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")


def run_in_new_loop(main: Coroutine[Any, Any, T]) -> T:
    """Run ``main`` to its end, in a loop made for it."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        from uvloop import new_event_loop
    except ImportError:
        log.info("without uvloop each request costs more: pip install 'millstream[uvloop]'")
        return None
    return new_event_loop
