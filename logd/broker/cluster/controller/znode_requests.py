"""Requests to the controller by znodes, from operators and older tools, carried out as by Kafka 3's
controller.

    /admin/delete_topics/T             delete a topic (delete.topic.enable=false: only remove the znode)
    /admin/preferred_replica_election  elect the preferred leaders of partitions
    /admin/reassign_partitions         move partitions; tools watch the znode, which is removed at the end

A request from a time without a controller is found by the next controller. A znode is removed when its
request is finished, even if nothing could be done: the log then has the reason. The znodes by which Kafka's
brokers notify each other (/isr_change_notification, /log_dir_event_notification) are left alone, since logd's
brokers send requests to the controller.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from kafka_client.errors import KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.config.broker import BrokerConfig
from logd.metadata.controller.core import Controller
from logd.metadata.controller.decision import Decision
from logd.metadata.controller.election import ElectionType
from logd.metadata.serving import ServingController
from logd.metadata.zookeeper.batches import write_all
from logd.metadata.zookeeper.election import Elected
from logd.metadata.zookeeper.errors import BadZnode, NoNode
from logd.metadata.zookeeper.session.operations import Delete
from logd.metadata.zookeeper.session.session import Session
from logd.metadata.zookeeper.watches import each_children, each_value
from logd.metadata.zookeeper.znodes import paths, znodes

MOVES_LOOK_S: Final = 1.0
"""Between two looks at whether what was to be moved has been."""

log = logging.getLogger("logd.cluster")


class ZnodeRequests:
    """The znode requests during one election. Each of `work` runs until it is cancelled.

    A MillstreamError ends the controller.
    """

    def __init__(
        self,
        session: Session,
        elected: Elected,
        serving: ServingController,
        config: Callable[[], BrokerConfig],
    ) -> None:
        self._session = session
        self._elected = elected
        self._serving = serving
        self._config = config

    def work(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        """Return the work to be run, by the name of its task."""
        return {
            "deletions by znode": self._deletions,
            "elections by znode": self._elections,
            "reassignments by znode": self._reassignments,
        }

    # Deletions

    async def _deletions(self) -> None:
        async for names in each_children(self._session, paths.DELETE_TOPICS):
            for name in names:
                await self._delete(name)

    async def _delete(self, name: str) -> None:
        path = paths.deletion(name)
        if self._config().delete_topic_enable:
            if (await self._serving.do(lambda controller: _deletion(controller, name))).answer:
                log.info("topic %s is deleted: ZooKeeper's %s wanted it", name, path, extra={"topic": name})
                return
            why = "there is no such topic"
        else:
            why = "topics are not deleted here: delete.topic.enable is false"
        # A deletion by request has such a znode as well while it is under way.
        if await self._session.exists(path) is not None:
            log.warning("ZooKeeper's %s is taken away: %s", path, why)
            await answered(self._session, self._elected, path)

    # Elections

    async def _elections(self) -> None:
        path = paths.PREFERRED_REPLICA_ELECTION
        async for value in each_value(self._session, path):
            if value is not None:
                await self._elect(value[0])
                await answered(self._session, self._elected, path)

    async def _elect(self, data: bytes) -> None:
        try:
            partitions = znodes.decode_partitions(paths.PREFERRED_REPLICA_ELECTION, data)
        except BadZnode as error:
            log.warning("nobody is elected, and the znode taken away: %s", error)
            return
        decision = await self._serving.do(
            lambda controller: controller.elect_leaders(ElectionType.PREFERRED, partitions)
        )
        _tell("elections", paths.PREFERRED_REPLICA_ELECTION, decision.answer)

    # Reassignments

    async def _reassignments(self) -> None:
        path = paths.REASSIGN_PARTITIONS
        async for value in each_value(self._session, path):
            if value is None:
                continue
            await self._reassign(value[0])
            now = await self._session.find(path)
            # What was written there meanwhile is read next.
            if now is not None and now[1].mzxid == value[1].mzxid:
                await answered(self._session, self._elected, path)

    async def _reassign(self, data: bytes) -> None:
        """Begin, and wait until all that could begin has ended."""
        try:
            assignments = znodes.decode_reassignments(data)
        except BadZnode as error:
            log.warning("nothing is moved, and the znode taken away: %s", error)
            return
        decision = await self._serving.do(lambda controller: controller.alter_reassignments(assignments))
        _tell("moves", paths.REASSIGN_PARTITIONS, decision.answer)
        image = self._serving.controller.image
        while image.broker_index.reassigning & assignments.keys():  # noqa: ASYNC110 (an image tells nobody)
            await asyncio.sleep(MOVES_LOOK_S)


async def answered(session: Session, elected: Elected, path: str) -> None:
    """Delete the znode of a request that is done or refused. Raises ControllerMoved."""
    try:
        await write_all(session, elected, [Delete(path)])
    except NoNode:
        # The requester has taken it back.
        return


def _deletion(controller: Controller, name: str) -> Decision[bool]:
    """Decide a topic's deletion. The answer is True if there is such a topic when the deletion is decided."""
    topic = controller.image.topics.get(name)
    if topic is None:
        return Decision([], False)
    return Decision(controller.delete_topic(name, topic.topic_id).changes, True)


def _tell(what: str, path: str, answers: Mapping[TopicPartition, KafkaError | None]) -> None:
    accepted = sum(refused is None for refused in answers.values())
    log.info("%d %s: ZooKeeper's %s wanted them", accepted, what, path)
    for tp, refused in answers.items():
        if refused is not None:
            log.warning("ZooKeeper's %s, partition %s: %s", path, tp, refused)
