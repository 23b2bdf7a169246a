"""Users that are set while no broker runs, so that the first login by SCRAM can succeed.

A standalone broker is started without listeners and stopped again. For a cluster the controller's role in
ZooKeeper is taken for a moment; no broker has to be started before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from logd.broker.broker import Broker, wall_clock_ms
from logd.metadata.controller.decision import Decision
from logd.metadata.controller.scram import Altered, Upsertion, alter_credentials
from logd.metadata.image import ClusterImage
from logd.security.scram_users import new_decoy_key

if TYPE_CHECKING:
    from logd.config.broker import BrokerConfig


async def set_in_log_dirs(config: BrokerConfig, upsertions: Sequence[Upsertion]) -> str:
    """Set credentials in the metadata of a standalone broker, and return where.

    Raises KafkaError for a credential that is refused, and StorageError while the broker runs.
    """
    broker = Broker(config)
    await broker.start()
    try:
        # A request may name a user once only.
        for each in upsertions:
            answer = await broker.catalog.decide(
                lambda controller, each=each: alteration(controller.image, each, alone=True)  # type: ignore[misc]
            )
            _raise_first(answer)
    finally:
        await broker.stop()
    return ", ".join(config.log_dirs)


async def set_in_zookeeper(config: BrokerConfig, upsertions: Sequence[Upsertion]) -> str:
    """Set credentials in a cluster's metadata, and return where.

    Raises KafkaError for a credential that is refused, and ClusterRuns while a controller runs.
    """
    from logd.broker.cluster.zookeeper_settings import zookeeper_settings
    from logd.config.zookeeper import ZooKeeperConfig
    from logd.metadata.zookeeper import cluster, moving
    from logd.metadata.zookeeper.election import elect, resign
    from logd.metadata.zookeeper.errors import ClusterRuns
    from logd.metadata.zookeeper.session.session import Session
    from logd.metadata.zookeeper.store import ZooKeeperStore

    settings = zookeeper_settings(ZooKeeperConfig.of(config.explicit))
    session = await Session(settings, patience_s=settings.connection_timeout_s).open()
    try:
        await moving.refuse_unfinished(session)
        await cluster.prepare(session)
        elected = await elect(session, config.node_id, wall_clock_ms())
        if elected is None:
            raise ClusterRuns(settings.connect)
        try:
            store = ZooKeeperStore(session, elected)
            image = ClusterImage.of(await store.load())
            for each in upsertions:
                decision = alteration(image, each, alone=False)
                _raise_first(decision.answer)
                await store.write(decision.changes)
                for change in decision.changes:
                    image.apply(change)
        finally:
            await resign(session, elected)
    finally:
        await session.close()
    return settings.connect


def alteration(image: ClusterImage, upsertion: Upsertion, *, alone: bool) -> Decision[Altered]:
    """Decide the change; a standalone broker needs a key for decoys with its first user."""
    return alter_credentials(image, [], [upsertion], decoy_key=new_decoy_key if alone else None)


def _raise_first(answer: Altered) -> None:
    for error in answer.values():
        if error is not None:
            raise error
