"""The serving controller: it decides, writes, applies and publishes one decision after the other.

`logd.metadata.controller` makes the decisions. The broker manages elections among brokers, the connections to
them, and a controller that has resigned.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from kafka_client.errors import ErrorCode, KafkaError
from logd.metadata.controller.core import Controller
from logd.metadata.controller.decision import Decision
from logd.metadata.image import Change

T = TypeVar("T")

logger = logging.getLogger("logd.metadata")


class ChangeStore(Protocol):
    """A store of changes: a standalone broker's journal, or ZooKeeper, which fences by controller epoch."""

    async def write(self, changes: list[Change]) -> None:
        """Store changes in their order; they are durable on return.

        Raises OSError if nothing was written. Any other error, such as `Fenced`, means that another
        controller may have taken over, or that a part of the changes may be written. This controller must
        resign then.
        """


class ServingController:
    """The controller in its term.

    It calls ``publish`` with each batch of applied changes, and ``resigned`` once, when it resigns.
    """

    def __init__(
        self,
        controller: Controller,
        store: ChangeStore,
        *,
        publish: Callable[[list[Change]], None],
        resigned: Callable[[], None],
    ) -> None:
        self.controller = controller
        self.is_active = True
        self._store = store
        self._publish = publish
        self._resigned = resigned
        self._turn = asyncio.Lock()
        self._running: set[asyncio.Task[Any]] = set()

    async def do(
        self, decide: Callable[[Controller], Decision[T]], *, validate_only: bool = False
    ) -> Decision[T]:
        """Make a decision in its turn, write it, apply it and publish it; return it.

        The decision's answer may be sent after the return. The work runs to its end even if the caller is
        cancelled, since a write must not be abandoned. Raises KafkaError: those of ``decide``,
        KAFKA_STORAGE_ERROR if nothing was written, and NOT_CONTROLLER.
        """
        running = asyncio.ensure_future(self._in_turn(decide, validate_only))
        self._running.add(running)
        running.add_done_callback(self._ended)
        return await asyncio.shield(running)

    def _ended(self, running: asyncio.Task[Any]) -> None:
        self._running.discard(running)
        if not running.cancelled():
            running.exception()  # retrieve the error, even if no caller waits for it

    def resign(self) -> None:
        """Stop deciding, because another controller may have taken over."""
        if self.is_active:
            self.is_active = False
            self._resigned()

    async def _in_turn(self, decide: Callable[[Controller], Decision[T]], validate_only: bool) -> Decision[T]:
        async with self._turn:
            return await self._decide(decide, validate_only)

    async def _decide(self, decide: Callable[[Controller], Decision[T]], validate_only: bool) -> Decision[T]:
        if not self.is_active:
            raise _not_controller(self.controller.epoch)
        decision = decide(self.controller)
        if validate_only or not decision.changes:
            return decision
        await self._write(decision.changes)
        self.controller.apply(decision)
        for tp in decision.unclean:
            logger.warning("%s has got a leader that was not in sync: records may be lost", tp)
        self._publish(decision.changes)
        return decision

    async def _write(self, changes: list[Change]) -> None:
        try:
            await self._store.write(changes)
        except OSError as error:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"cluster metadata not written: {error}"
            ) from error
        except Exception as error:
            logger.warning("controller of epoch %d resigns: %s", self.controller.epoch, error)
            self.resign()
            raise _not_controller(self.controller.epoch) from error
        except BaseException:
            self.resign()  # cancelled: the write may have been carried out in part
            raise


def _not_controller(epoch: int) -> KafkaError:
    return KafkaError(
        ErrorCode.NOT_CONTROLLER, f"this controller, of epoch {epoch}, has resigned: find its successor"
    )
