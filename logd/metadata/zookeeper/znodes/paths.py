"""The paths of the znodes that Kafka 3's brokers use, below the chroot."""

from __future__ import annotations

import base64
from typing import Final
from urllib.parse import quote, unquote_plus

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
"""A path that Kafka does not have: a standalone broker's metadata is being moved here. See `moving`."""

CLUSTER_SECRET: Final = "/millstream/cluster_secret"
"""A path that Kafka does not have: the secret by which the brokers of the cluster log in to each other."""

DEFAULT_ENTITY: Final = "<default>"
"""The entity whose settings hold for all entities without a value of their own."""
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
    """Return the path of the parent of a topic's partitions."""
    return f"{TOPICS}/{topic_name}/partitions"


def partition(topic_name: str, index: int) -> str:
    """Return the path of the parent of a partition's state."""
    return f"{TOPICS}/{topic_name}/partitions/{index}"


def state(topic_name: str, index: int) -> str:
    """Return the path of a partition's state; the znode's version is the partition's epoch."""
    return f"{TOPICS}/{topic_name}/partitions/{index}/state"


def config(kind: str, entity: str) -> str:
    """Return the path of an entity's changed settings; `kind` is topics, brokers, clients, users or ips."""
    return f"{CONFIG}/{kind}/{entity}"


def sanitized(name: str) -> str:
    """Return the name of a user's znode, as Kafka's Sanitizer. ZooKeeper allows no name of only dots."""
    text = quote(name, safe="").replace("~", "%7E")
    return text if text.strip(".") else text.replace(".", "%2E")


def desanitized(name: str) -> str:
    """Return the user of a znode's name."""
    return unquote_plus(name)


def deletion(topic_name: str) -> str:
    """Return the path of the znode that requests the deletion of a topic from the controller."""
    return f"{DELETE_TOPICS}/{topic_name}"


def topic_id_text(topic_id: bytes) -> str:
    """Return the text of a topic id, as Kafka's Uuid prints it."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def topic_id_of(text: str) -> bytes:
    """Return the 16 bytes of a topic id from its text. Raises ValueError if the text is not a Uuid."""
    topic_id = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    if len(topic_id) != 16:
        raise ValueError(f"a topic id has 16 bytes, not {len(topic_id)}")
    return topic_id
