"""Where Kafka 3's brokers keep what; all below the chroot."""

from __future__ import annotations

import base64
from typing import Final

CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
CLUSTER_ID: Final = "/cluster/id"
BROKER_IDS: Final = "/brokers/ids"
BROKER_SEQUENCE: Final = "/brokers/seqid"
TOPICS: Final = "/brokers/topics"
CONFIG: Final = "/config"
CONFIG_CHANGES: Final = "/config/changes"
CONFIG_CHANGE_PREFIX: Final = CONFIG_CHANGES + "/config_change_"
DELETE_TOPICS: Final = "/admin/delete_topics"
REASSIGN_PARTITIONS: Final = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION: Final = "/admin/preferred_replica_election"
PRODUCER_ID_BLOCK: Final = "/latest_producer_id_block"
ISR_CHANGES: Final = "/isr_change_notification"
LOG_DIR_EVENTS: Final = "/log_dir_event_notification"
CONSUMERS: Final = "/consumers"
MOVE: Final = "/millstream/move"
"""Not Kafka's: a single node's metadata is on its way here. See `moving`."""

DEFAULT_ENTITY: Final = "<default>"
"""In place of an entity's name: what holds for all that have no value of their own."""
PERSISTENT: Final = (
    CONSUMERS,
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    BROKER_SEQUENCE,
    ISR_CHANGES,
    PRODUCER_ID_BLOCK,
    LOG_DIR_EVENTS,
    *(f"{CONFIG}/{kind}" for kind in ("topics", "clients", "users", "brokers", "ips")),
)
"""Paths that each of Kafka's brokers creates at its start if they are missing."""


def broker(broker_id: int) -> str:
    """Return the path of a broker's registration."""
    return f"{BROKER_IDS}/{broker_id}"


def topic(name: str) -> str:
    """Return the path of a topic's id and assignment."""
    return f"{TOPICS}/{name}"


def partitions(topic_name: str) -> str:
    """Return the parent of a topic's partitions."""
    return f"{TOPICS}/{topic_name}/partitions"


def partition(topic_name: str, index: int) -> str:
    """Return the parent of a partition's state."""
    return f"{TOPICS}/{topic_name}/partitions/{index}"


def state(topic_name: str, index: int) -> str:
    """Return the path of a partition's state; the znode's version is the partition's epoch."""
    return f"{TOPICS}/{topic_name}/partitions/{index}/state"


def config(kind: str, entity: str) -> str:
    """Changed settings; `kind` is topics, brokers, …"""
    return f"{CONFIG}/{kind}/{entity}"


def deletion(topic_name: str) -> str:
    """Asks the controller to delete a topic."""
    return f"{DELETE_TOPICS}/{topic_name}"


def topic_id_text(topic_id: bytes) -> str:
    """Return a topic id in Kafka's text form of a Uuid."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def topic_id_of(text: str) -> bytes:
    """Return the 16 bytes of a Uuid. Raises ValueError."""
    topic_id = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    if len(topic_id) != 16:
        raise ValueError(f"a topic id has 16 bytes, not {len(topic_id)}")
    return topic_id
