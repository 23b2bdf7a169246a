"""The controller's election, as in Kafka 3.

`/controller` is ephemeral and names the controller; `/controller_epoch` grows by one with each election. Both
are written in one `multi` that expects the epoch as it was read, so that only one of two simultaneous
candidates is elected. The resulting version of `/controller_epoch` is the fence. Every write of the
controller checks this version in its `multi`, so that no write of an older controller is carried out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from logd.metadata.zookeeper.errors import (
    ConnectionLost,
    ControllerMoved,
    NodeExists,
    NoNode,
    ZooKeeperError,
)
from logd.metadata.zookeeper.session.lease import Lease
from logd.metadata.zookeeper.session.operations import (
    Check,
    Create,
    Delete,
    MultiFailed,
    SetData,
    Stat,
    Write,
)
from logd.metadata.zookeeper.session.session import Event, Session, State
from logd.metadata.zookeeper.watches import Watch, report
from logd.metadata.zookeeper.znodes import paths, znodes

FIRST_EPOCH: Final = 1
AGAIN_S: Final = 1.0
"""Seconds until a candidate tries again after an error of ZooKeeper."""

log = logging.getLogger("logd.zookeeper")


@dataclass(frozen=True, slots=True)
class Elected:
    """The election of this broker as the controller, valid while `lease` is held.

    Writes do not depend on the lease: the fence decides about them.
    """

    broker_id: int
    epoch: int
    epoch_version: int
    lease: Lease

    @property
    def fence(self) -> Check:
        """The first operation of every `multi` of the controller."""
        return Check(paths.CONTROLLER_EPOCH, self.epoch_version)


@dataclass(frozen=True, slots=True)
class Controller:
    """The current controller: `broker_id` is -1 if there is none; `elected` is set if it is this broker."""

    broker_id: int = -1
    epoch: int = 0
    elected: Elected | None = None


async def elect(session: Session, broker_id: int, now_ms: int) -> Elected | None:
    """Become the controller if there is none; return None if another broker is, or has just been elected.

    Raises ConnectionLost if there is no connection.
    """
    lease = session.lease
    epoch, stat = await _epoch(session)
    owner = await session.exists(paths.CONTROLLER)
    if owner is not None and owner.ephemeral_owner != session.session_id:
        return None
    operations = (
        Create(paths.CONTROLLER, znodes.encode_controller(broker_id, now_ms), ephemeral=True),
        SetData(paths.CONTROLLER_EPOCH, znodes.encode_number(epoch + 1), stat.version),
    )
    try:
        answers = await session.multi(operations)
    except (MultiFailed, ConnectionLost):
        # This `multi`, or an earlier one whose answer was lost, may have been carried out.
        return await _elected(session, broker_id)
    if session.lease is not lease:
        return await _elected(session, broker_id)
    return Elected(broker_id, epoch + 1, answers[1].version, lease)


async def resign(session: Session, elected: Elected) -> None:
    """Delete `/controller` if this election still holds it, so that another broker is elected at once."""
    try:
        await session.multi((elected.fence, Delete(paths.CONTROLLER)))
    except (MultiFailed, ConnectionLost) as error:
        # Another broker is the controller, or ZooKeeper deletes the znode when the session ends.
        log.info("controller epoch %d: nothing to give back (%s)", elected.epoch, error)


async def fenced(session: Session, elected: Elected, operations: Sequence[Write]) -> list[Any]:
    """Write all or none of the operations if this is still the controller. Return each one's result.

    Raises ControllerMoved, ConnectionLost, or MultiFailed with the operation's index in `operations`.
    """
    try:
        answers = await session.multi((elected.fence, *operations))
    except MultiFailed as failed:
        if failed.index == 0:
            raise ControllerMoved(elected.epoch) from None
        raise MultiFailed(failed.index - 1, failed.error) from None
    return answers[1:]


async def _epoch(session: Session) -> tuple[int, Stat]:
    """Return the controller epoch with its stat; write the first epoch if there is none."""
    while True:
        try:
            data, stat = await session.get(paths.CONTROLLER_EPOCH)
            return znodes.decode_number(paths.CONTROLLER_EPOCH, data), stat
        except NoNode:
            try:
                await session.create(paths.CONTROLLER_EPOCH, znodes.encode_number(FIRST_EPOCH - 1))
            except NodeExists:
                continue


async def _elected(session: Session, broker_id: int) -> Elected | None:
    """Return the election won by the current session, or None."""
    await session.sync()
    lease = session.lease
    controller = await session.exists(paths.CONTROLLER)
    epoch, stat = await _epoch(session)
    if controller is None or controller.ephemeral_owner != lease.session_id:
        return None
    if controller.czxid != stat.mzxid:
        # One transaction writes both, so there was another election between the two reads.
        return None
    return Elected(broker_id, epoch, stat.version, lease)


class Candidate:
    """A candidate for controller, which tries to be elected whenever there is none.

    It calls `changed` in the loop, once for each new controller. It also calls `changed` with `broker_id` -1
    when this broker was the controller and its session is over: from then on it must decide nothing. After
    `stand_down` it also calls `changed` when there is no controller.
    """

    def __init__(
        self,
        session: Session,
        broker_id: int,
        changed: Callable[[Controller], None],
        wall_clock_ms: Callable[[], int],
    ) -> None:
        self.controller = Controller()
        self._session = session
        self._broker_id = broker_id
        self._changed = changed
        self._wall_clock_ms = wall_clock_ms
        self._stands = True
        self._task: asyncio.Task[None] | None = None
        self._forget: Callable[[], None] = lambda: None
        self._look_again: Callable[[], None] = lambda: None
        self._given_back = 0
        """The epoch that this broker resigned last, even if ZooKeeper does not know it yet."""

    def start(self) -> None:
        """Begin to watch the controller, as a candidate, in the running loop."""
        self._forget = self._session.add_listener(self._watch_fired)
        self._task = asyncio.get_running_loop().create_task(self._run(), name="the controller's election")
        self._task.add_done_callback(report)

    async def stop(self) -> None:
        """Stop being a candidate, and resign if this broker is the controller."""
        self._forget()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        elected = self.controller.elected
        if elected is not None:
            await resign(self._session, elected)
        self._say(Controller())

    async def stand_down(self) -> None:
        """Resign, and be no candidate until `stand`; continue to report the controller."""
        self._stands = False
        await self.resign()

    def stand(self) -> None:
        """Be a candidate again from now on."""
        self._stands = True
        self._look_again()

    async def resign(self) -> None:
        """Resign, and remain a candidate: this broker or another one is elected."""
        elected = self.controller.elected
        if elected is not None:
            self._given_back = elected.epoch
            self._say(Controller())
            await resign(self._session, elected)

    async def _run(self) -> None:
        with Watch(self._session) as watch:
            self._look_again = watch.trigger
            while True:
                try:
                    await self._look(watch)
                except ConnectionLost:
                    # The session triggers the watch when it is connected again.
                    await watch.changed()
                except ZooKeeperError as error:
                    if self._session.state is State.CLOSED:
                        return
                    log.error("the controller's election: %s", error)
                    await asyncio.sleep(AGAIN_S)
                except Exception as error:
                    log.error("the controller's election: unexpected %r", error, exc_info=error)
                    await asyncio.sleep(AGAIN_S)
                else:
                    await watch.changed()

    async def _look(self, watch: Watch) -> None:
        """Read and watch `/controller`; try to be elected if there is no controller.

        This session may also be the controller without knowing it, because an answer was lost.
        """
        value = await watch.find(paths.CONTROLLER)
        ours = self._session.session_id
        if value is not None and value[1].ephemeral_owner != ours:
            controller = znodes.decode_controller(value[0])
            self._say(Controller(controller.broker_id, (await _epoch(self._session))[0]))
            return
        current = self.controller.elected
        if value is not None and current is not None and current.lease.session_id == ours:
            return
        if not self._stands:
            if value is None:
                self._say(Controller())
            return
        elected = await elect(self._session, self._broker_id, self._wall_clock_ms())
        if elected is not None and elected.epoch == self._given_back:
            # This broker resigned in that epoch, but had no connection to delete the znode. Brokers may have
            # applied decisions of the epoch, so the next controller needs a new one.
            await resign(self._session, elected)
            elected = None
        if elected is None:
            watch.trigger()
            return
        log.info("broker %d is elected controller, epoch %d", self._broker_id, elected.epoch)
        self._say(Controller(self._broker_id, elected.epoch, elected))

    def _watch_fired(self, event: Event) -> None:
        if event is Event.EXPIRED and self.controller.elected is not None:
            self._say(Controller())

    def _say(self, controller: Controller) -> None:
        if controller != self.controller:
            self.controller = controller
            self._changed(controller)
