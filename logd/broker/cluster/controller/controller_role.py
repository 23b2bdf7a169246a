"""The controller's role while this broker has it: loaded from ZooKeeper, and notified of brokers' changes.

The role ends with the session, the next election, or a write that is refused. The next controller loads what
was written: nothing else counts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

from kafka_client.errors import ErrorCode, KafkaError, MillstreamError
from logd.broker.cluster.controller.publisher import Asking, Publisher
from logd.broker.cluster.controller.znode_notifications import ZnodeNotifications
from logd.broker.cluster.controller.znode_requests import ZnodeRequests
from logd.broker.work.periodic import report
from logd.config.broker import BrokerConfig
from logd.metadata.controller.core import Controller, ControllerSettings
from logd.metadata.controller.decision import Decision
from logd.metadata.image import BrokerImage, ClusterImage, Endpoint
from logd.metadata.serving import ServingController
from logd.metadata.zookeeper.election import Elected
from logd.metadata.zookeeper.session.session import Session
from logd.metadata.zookeeper.store import ZooKeeperStore
from logd.metadata.zookeeper.watches import LiveBroker, each_brokers

T = TypeVar("T")

log = logging.getLogger("logd.cluster")


class ControllerRole:
    """From `start` to `stop`, one election. `over` is called once, when this controller may not go on: the
    role is to be given back then.
    """

    def __init__(
        self,
        session: Session,
        elected: Elected,
        peers: Asking,
        config: Callable[[], BrokerConfig],
        over: Callable[[], None],
    ) -> None:
        self.elected = elected
        self._session = session
        self._store = ZooKeeperStore(session, elected)
        self._peers = peers
        self._config = config
        self._over = over
        self._fenced = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._publisher: Publisher | None = None
        self.image: ClusterImage | None = None
        """The image that decisions are made on, once it is loaded."""
        self._serving: asyncio.Future[ServingController] = asyncio.get_running_loop().create_future()

    def start(self) -> None:
        """Load, and begin deciding behind it."""
        self._spawn(self._to_its_end(self._serve, "controller"), "controller")
        self._spawn(self._until_gone(), "controller's end")

    def _spawn(self, work: Coroutine[None, None, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Decide nothing any more."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._serving.done():
            self._serving.result().resign()
        else:
            # Not cancelled: its waiters are to find the next controller, and a cancelled request is never
            # answered.
            epoch = self.elected.epoch
            self._serving.set_exception(
                KafkaError(ErrorCode.NOT_CONTROLLER, f"the controller of epoch {epoch} ended while it loaded")
            )
            self._serving.exception()  # seen, also where nobody waits
        if self._publisher is not None:
            await self._publisher.close()

    @property
    def publisher(self) -> Publisher | None:
        """Who feeds the brokers, once all is loaded."""
        return self._publisher

    async def do(
        self, decide: Callable[[Controller], Decision[T]], *, validate_only: bool = False
    ) -> Decision[T]:
        """Have something decided at its turn, also while it still loads; this broker has applied it then.

        KafkaError: see `ServingController.do`. NOT_CONTROLLER also where nothing is to be changed, and this
        may not be the controller any more: no fenced write has shown that it is.
        """
        serving = await asyncio.shield(self._serving)
        decision = await serving.do(decide, validate_only=validate_only)
        if not decision.changes and not self.elected.lease.is_held(self._session.clock()):
            raise KafkaError(
                ErrorCode.NOT_CONTROLLER,
                f"the session of the controller of epoch {self.elected.epoch} may be over",
            )
        if decision.changes and not validate_only and self._publisher is not None:
            await self._publisher.wait_until_received(self.elected.broker_id)
        return decision

    def settings_changed(self) -> None:
        """Go by the broker's settings as they are now."""
        self._spawn(self._configure(), "controller's settings")

    async def _configure(self) -> None:
        try:
            serving = await asyncio.shield(self._serving)
            await serving.do(lambda controller: controller.configure(settings_of(self._config())))
        except MillstreamError as error:
            log.warning("controller of epoch %d keeps its settings: %s", self.elected.epoch, error)
        except Exception as error:
            report("the controller's settings", error)

    async def _to_its_end(self, work: Callable[[], Awaitable[None]], name: str) -> None:
        """Run `work` to its end; a failure ends the controller, and another one is elected."""
        try:
            await work()
        except MillstreamError as error:
            log.warning("controller of epoch %d ends: %s", self.elected.epoch, error)
            self._fenced.set()
        except Exception as error:
            report(f"{name}, of the controller of epoch {self.elected.epoch}", error)
            self._fenced.set()

    async def _serve(self) -> None:
        image = self.image = ClusterImage.of(await self._store.load())
        controller = Controller(image, epoch=self.elected.epoch, settings=settings_of(self._config()))
        publisher = self._publisher = Publisher(
            self.elected.broker_id, self.elected.epoch, image, self._peers, self._fenced
        )
        serving = ServingController(
            controller, self._store, publish=publisher.publish, resigned=self._fenced.set
        )
        restarted = self._store.restarted(image)
        await serving.do(lambda controller: controller.take_over(restarted))
        publisher.publish(())  # brokers that are there are told even if nothing has changed
        log.info(
            "controller of epoch %d: %d partitions, brokers %s",
            self.elected.epoch,
            len(image.partitions),
            ", ".join(map(str, sorted(image.brokers))) or "none",
        )
        self._serving.set_result(serving)
        self._spawn(self._rebalance(serving), "preferred replicas")
        requests = ZnodeRequests(self._session, self.elected, serving, self._config).work()
        notifications = ZnodeNotifications(self._session, self.elected, serving).work()
        for name, work in {**requests, **notifications}.items():
            self._spawn(self._to_its_end(work, name), name)
        async for live in each_brokers(self._session):
            alive = [image_of(broker, registered) for broker, registered in live.items()]
            await serving.do(lambda controller, alive=alive: controller.see_brokers(alive))  # type: ignore[misc]

    async def _rebalance(self, serving: ServingController) -> None:
        while True:
            await asyncio.sleep(self._config().leader_imbalance_check_interval_seconds)
            if self._config().auto_leader_rebalance_enable:
                await self._rebalance_once(serving)

    async def _rebalance_once(self, serving: ServingController) -> None:
        """Give leadership back to preferred replicas."""
        try:
            decision = await serving.do(lambda controller: controller.rebalance_leaders())
        except MillstreamError as error:
            log.warning("preferred replicas: %s", error)
            return
        except Exception as error:
            report("preferred replicas", error)
            return
        if decision.answer:
            log.info("%d partitions are led by their preferred replica again", len(decision.answer))

    async def _until_gone(self) -> None:
        await self._fenced.wait()
        self._over()


def settings_of(config: BrokerConfig) -> ControllerSettings:
    """Return the settings for a controller that is elected now."""
    return ControllerSettings(
        defaults=config.topic_defaults,
        leader_imbalance_per_broker_percentage=config.leader_imbalance_per_broker_percentage,
    )


def image_of(broker: int, registered: LiveBroker) -> BrokerImage:
    """Return the image of a broker from its registration."""
    return BrokerImage(
        id=broker,
        epoch=registered.epoch,
        rack=registered.registration.rack,
        is_shutting_down=registered.registration.is_shutting_down,
        endpoints=tuple(
            Endpoint(each.listener, each.host, each.port, each.security_protocol)
            for each in registered.registration.endpoints
        ),
    )
