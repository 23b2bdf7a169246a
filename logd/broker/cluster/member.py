"""This broker as one of several: registered, told what the controller decides, and the controller if elected.

    session ──▶ registration ──▶ epoch ──▶ inbox ◀── the controller's feed
       └──────▶ candidacy ──▶ controlling, while elected

What is applied opens partitions and gives them roles (`TopicCatalog.follow`). A broker whose registration is
gone is told nothing until it is registered again, and then everything.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from kafka_client.backoff import Backoff
from kafka_client.errors import ErrorCode, KafkaError, MillstreamError, error_for
from kafka_client.wire import Message
from kafka_client.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from kafka_client.wire.private.cluster_update import ClusterUpdateRequest, ClusterUpdateResponse
from logd.broker.cluster.controller.controller_role import ControllerRole
from logd.broker.cluster.controller.publisher import update_of
from logd.broker.cluster.epoch_proof import EpochProof
from logd.broker.cluster.peer_connections import PeerConnections
from logd.broker.topics.catalog import TopicCatalog
from logd.broker.work.periodic import report
from logd.broker.work.pool import to_its_end
from logd.config.broker import BrokerConfig
from logd.metadata.feed.inbox import Inbox
from logd.metadata.image import Change, ClusterImage
from logd.metadata.zookeeper.cluster import prepare
from logd.metadata.zookeeper.election import Candidate, Elected
from logd.metadata.zookeeper.election import Controller as Seen
from logd.metadata.zookeeper.errors import ZooKeeperError
from logd.metadata.zookeeper.moving import refuse_unfinished
from logd.metadata.zookeeper.registration import Registered, Registrar
from logd.metadata.zookeeper.session.lease import Lease
from logd.metadata.zookeeper.session.session import Session
from logd.metadata.zookeeper.znodes.paths import BROKER_IDS
from logd.metadata.zookeeper.znodes.znodes import Registration

FORWARD_BACKOFF_S: Final = (0.05, 1.0)
FORWARD_TIMEOUT_S: Final = 30.0
"""How long a client's request waits for a controller that takes it."""

CONTROLLER_LANE: Final = "controller"
"""Short questions to the controller: none of them waits behind markers, which wait for replicas."""

NO_LEASE: Final = Lease()

log = logging.getLogger("logd.cluster")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberFacts:
    """Functions that return what the member says and uses: registration, settings, wall clock."""

    registration: Callable[[], Registration]
    config: Callable[[], BrokerConfig]
    now_ms: Callable[[], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberCallbacks:
    """Functions that the member calls when something has happened."""

    failed: Callable[[MillstreamError], None]
    """The broker may not go on: another one has its id."""
    controller_changed: Callable[[int], None]
    """Another broker is the controller, or nobody (-1)."""
    applied: Callable[[list[Change]], None]
    """Called with each batch of changes, after the image has them."""


class Member:
    """This broker as a member of the cluster: registered, a candidate for controller, and kept up to date.

    `image` is the broker's, which `catalog` changes.
    """

    def __init__(
        self,
        node_id: int,
        session: Session,
        peers: PeerConnections,
        *,
        image: ClusterImage,
        catalog: TopicCatalog,
        facts: MemberFacts,
        callbacks: MemberCallbacks,
    ) -> None:
        self.node_id = node_id
        self.epoch = -1
        self.session = session
        self.peers = peers
        self.on_snapshot: Callable[[], None] = lambda: None
        """Called when a controller has told everything: another one, or after a registration."""
        self._image = image
        self._catalog = catalog
        self._facts = facts
        self._callbacks = callbacks
        self._inbox = Inbox(image)
        self._registered_with = self._lease = NO_LEASE
        self._taking = asyncio.Lock()
        self._is_leaving = False
        self._has_snapshot = asyncio.Event()
        self._registrar = Registrar(
            session,
            node_id,
            lambda: replace(facts.registration(), is_shutting_down=self._is_leaving),
            facts.now_ms,
            self._registered,
            self._registration_failed,
        )
        self._candidate = Candidate(session, node_id, self._controller_changed, facts.now_ms)
        self._proof = EpochProof(session, lambda: self._candidate.controller.epoch)
        self._controlling: ControllerRole | None = None
        self._asking: set[asyncio.Timeout] = set()
        """Questions to the controller there is; each is over when there is another, or none."""
        self._ends: set[asyncio.Task[None]] = set()

    # Life

    async def start(self) -> None:
        """Register, and become a candidate for controller.

        Raises DuplicateBrokerId, UnfinishedMove, and other ZooKeeperErrors.
        """
        await prepare(self.session, with_acls=bool(self._facts.config().authorizer_class_name))
        await self._registrar.start()
        # Once more: a move that has begun since then either is seen here, or sees this registration.
        await refuse_unfinished(self.session)
        self._candidate.start()

    async def wait_for_snapshot(self) -> None:
        """Wait until the controller has sent a whole snapshot once."""
        await self._has_snapshot.wait()

    async def others_stay(self) -> bool:
        """Return True if other brokers are registered that are not shutting down as well.

        Raises ZooKeeperError.
        """
        brokers = self._image.brokers
        for name in await self.session.find_children(BROKER_IDS):
            registered = brokers.get(int(name))
            if int(name) != self.node_id and not (registered is not None and registered.is_shutting_down):
                return True
        return False

    async def say_leaving(self) -> None:
        """Have every controller there may be know that this broker wants to stop, as long as it is there."""
        self._is_leaving = True
        try:
            await self._registrar.say_again()
        except ZooKeeperError as error:
            log.info("broker %d: could not announce its shutdown in ZooKeeper: %s", self.node_id, error)

    async def stand_down(self) -> None:
        """Have another broker be the controller from now on. ZooKeeperError."""
        await self._candidate.stand_down()

    def stand(self) -> None:
        """Be the controller if nobody else is."""
        self._candidate.stand()

    async def stop(self) -> None:
        """Be no controller, and ask nobody any more; registered until `unregister`."""
        try:
            await self._candidate.stop()
        except ZooKeeperError as error:
            log.info("the controller's role goes with the session: %s", error)
        self._end_controlling()
        await asyncio.gather(*self._ends, return_exceptions=True)
        await self.peers.close()

    async def unregister(self) -> None:
        """Remove the registration, by which the other brokers learn that this one is gone.

        The session is its owner's to close.
        """
        await self._registrar.stop()

    @property
    def is_leased(self) -> bool:
        """True if this broker surely still has the roles it was given: otherwise nothing may be acknowledged.

        After a new registration the controller has to send everything again: others may have been elected in
        between.
        """
        return self._lease.is_held(self.session.clock())

    # Registration and election

    def _registered(self, registered: Registered) -> None:
        self.epoch = registered.epoch
        self._registered_with, self._lease = registered.lease, NO_LEASE
        self._inbox.registered(registered.epoch)
        log.info("broker %d is registered, epoch %d", self.node_id, registered.epoch)

    def _registration_failed(self, error: ZooKeeperError) -> None:
        self._callbacks.failed(error)

    def _controller_changed(self, elected: Seen) -> None:
        self._end_controlling()
        for asking in self._asking:
            asking.reschedule(0)
        self._asking.clear()
        if elected.elected is not None:
            self._controlling = self._begin_controlling(elected.elected)
            self._controlling.start()
        self._catalog.controller = self._controlling
        self._callbacks.controller_changed(elected.broker_id)

    def _begin_controlling(self, elected: Elected) -> ControllerRole:
        return ControllerRole(self.session, elected, self, self._facts.config, self._resign)

    async def request(self, broker: int, message: Message, *, lane: str = "") -> Any:
        """Ask a broker, which may be this one. MillstreamError."""
        if broker == self.node_id and isinstance(message, ClusterUpdateRequest):
            return await self.take(message)
        return await self.peers.request(broker, message, lane=lane)

    def _end_controlling(self) -> None:
        controlling, self._controlling = self._controlling, None
        self._catalog.controller = None
        if controlling is not None:
            self._end_with(controlling.stop())

    def _resign(self) -> None:
        """Resign, and have another controller elected: the controller here cannot go on."""
        self._end_controlling()
        self._end_with(self._candidate.resign())

    def _end_with(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._ends.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._ends.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, ZooKeeperError):
                log.info("the controller's role goes with the session: %s", error)
            else:
                report("the end of the controller's role", error)

    # The controller

    @property
    def controller_id(self) -> int:
        """Who is the controller, as ZooKeeper says; -1: nobody."""
        return self._candidate.controller.broker_id

    @property
    def controlling(self) -> ControllerRole:
        """The role of the controller. KafkaError(NOT_CONTROLLER) where this broker has it not."""
        if self._controlling is None:
            raise KafkaError(
                ErrorCode.NOT_CONTROLLER,
                f"broker {self.node_id} is not the controller: {self.controller_id} is",
            )
        return self._controlling

    @property
    def if_controlling(self) -> ControllerRole | None:
        """The controller's role, if this broker has it."""
        return self._controlling

    @property
    def controller_image(self) -> ClusterImage | None:
        """The controller's image, if this broker is the controller and has loaded it."""
        return None if self._controlling is None else self._controlling.image

    @property
    def is_active(self) -> bool:
        """See `ControllerLink`."""
        return self._controlling is not None

    async def forward(self, envelope: EnvelopeRequest) -> EnvelopeResponse:
        """See `ControllerLink`."""
        backoff = Backoff(*FORWARD_BACKOFF_S)
        why = "it was asked for too long"
        try:
            async with asyncio.timeout(FORWARD_TIMEOUT_S):
                while True:
                    try:
                        answer: EnvelopeResponse = await self.ask_controller(envelope, lane="forwarded")
                        if answer.error_code != ErrorCode.NOT_CONTROLLER:
                            return answer
                        why = f"broker {self.controller_id} is not the controller"
                    except MillstreamError as error:
                        why = str(error)
                    await asyncio.sleep(backoff.next())
        except TimeoutError:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"the controller does not answer: {why}") from None

    async def ask_controller(self, message: Message, *, lane: str = CONTROLLER_LANE) -> Any:
        """Send a request to the controller, which may be this broker. Raises MillstreamError.

        The controller may hang or be cut off. Once there is another one, or none, the wait ends with
        KafkaError(NOT_CONTROLLER), and the outcome of the request is unknown.
        """
        controller = self.controller_id
        if controller < 0:
            raise error_for(ErrorCode.NOT_CONTROLLER, "there is no controller now")
        asking = asyncio.timeout(None)
        try:
            async with asking:
                self._asking.add(asking)
                return await self.peers.request(controller, message, lane=lane)
        except TimeoutError:
            reason = f"broker {controller} has not answered, and is the controller no more"
            raise error_for(ErrorCode.NOT_CONTROLLER, reason) from None
        finally:
            self._asking.discard(asking)

    # The feed

    async def take(self, request: ClusterUpdateRequest) -> ClusterUpdateResponse:
        """Apply an update of the controller.

        An update is always applied to its end, even if the request is cancelled: the controller does not send
        it twice.
        """
        try:
            await self._proof.check(request.controller_epoch)
        except MillstreamError as error:
            log.warning("an update of controller %d is refused: %s", request.controller_id, error)
            return ClusterUpdateResponse(
                error_code=ErrorCode.INVALID_REQUEST, error_message="ZooKeeper knows of no such controller"
            )
        return await to_its_end(self._take(request))

    async def _take(self, request: ClusterUpdateRequest) -> ClusterUpdateResponse:
        async with self._taking:
            try:
                update = update_of(request)
                was_complete = self._inbox.is_complete and not update.begins
                changes = self._inbox.take(update)
            except KafkaError as error:
                return ClusterUpdateResponse(error_code=error.code, error_message=error.message)
            try:
                await self._apply(changes, was_complete=was_complete)
            except Exception as error:
                report("what the controller tells", error)
                self._inbox.registered(self.epoch)  # part of it is applied: everything has to be said again
                return ClusterUpdateResponse(
                    error_code=ErrorCode.UNKNOWN_SERVER_ERROR, error_message=str(error)
                )
        return ClusterUpdateResponse()

    async def _apply(self, changes: list[Change], *, was_complete: bool) -> None:
        await self._catalog.follow(changes)
        self.peers.brokers_changed()
        self._callbacks.applied(changes)
        if not self._inbox.is_complete:
            return
        self._lease = self._registered_with
        if not self._has_snapshot.is_set():
            await self._catalog.set_strays_aside()
            self._has_snapshot.set()
        if not was_complete:
            self.on_snapshot()
