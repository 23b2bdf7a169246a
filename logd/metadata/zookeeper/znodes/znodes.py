"""The contents of Kafka 3's znodes, encoded and decoded; topics are in `topic_znodes`, locations in `paths`.

As in Kafka's decoders, unknown fields are skipped, and older versions are accepted. If a wrong value would
have effects, decoders raise BadZnode, with path, value and remedy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from kafka_client.topic_partition import TopicPartition
from logd.metadata.zookeeper.errors import BadZnode
from logd.metadata.zookeeper.znodes import paths

T = TypeVar("T")
_encode = msgspec.json.encode
_SECRET_CONFIGS: Final = f"{paths.CONFIG}/users/"
REWRITE: Final = "mend or delete it with a ZooKeeper shell, while no broker runs"
_ENDPOINT: Final = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")

# Brokers and the controller


class ControllerZnode(NamedTuple):
    """The controller's broker id; if the znode has a KRaft epoch, the cluster is being moved to KRaft."""

    broker_id: int
    kraft_epoch: int = -1


def encode_controller(broker_id: int, now_ms: int) -> bytes:
    """Encode `/controller`."""
    return _encode(
        {"version": 2, "brokerid": broker_id, "timestamp": str(now_ms), "kraftControllerEpoch": -1}
    )


def decode_controller(data: bytes) -> ControllerZnode:
    """Decode `/controller`. Raises BadZnode."""
    document = decoded(paths.CONTROLLER, data, _Controller, "delete it: the brokers elect another controller")
    kraft_epoch = document.kraftControllerEpoch
    return ControllerZnode(document.brokerid, -1 if kraft_epoch is None else kraft_epoch)


def encode_number(number: int) -> bytes:
    """Encode `/controller_epoch`, or an old consumer's offset."""
    return str(number).encode()


def decode_number(path: str, data: bytes) -> int:
    """Decode `/controller_epoch`, or an old consumer's offset. Raises BadZnode."""
    try:
        return int(data)
    except ValueError:
        raise BadZnode(path, data, "it must be a decimal number", REWRITE) from None


def encode_cluster_id(cluster_id: str) -> bytes:
    """Encode `/cluster/id`."""
    return _encode({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str:
    """Decode `/cluster/id`. Raises BadZnode."""
    return decoded(paths.CLUSTER_ID, data, _ClusterId, "write the id in the brokers' meta.properties").id


class Endpoint(NamedTuple):
    """The address of a broker's listener."""

    listener: str
    host: str
    port: int
    security_protocol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A broker's description in `/brokers/ids/N`. `features` are preserved but not used.

    ``is_shutting_down`` is logd's own field `millstream_is_shutting_down`, present only if true. Kafka's
    controllers drop this field, so they treat the broker as any other. ``is_logd`` is logd's own field
    `millstream_logd`; a broker without it is one of Apache Kafka. ``logs_in`` is logd's own field
    `millstream_broker_login`; a broker without it is of a release in which brokers do not log in to others.
    """

    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    jmx_port: int = -1
    is_shutting_down: bool = False
    is_logd: bool = False
    logs_in: bool = False
    features: Mapping[str, Any] = field(default_factory=dict)


def encode_registration(broker: Registration, now_ms: int) -> bytes:
    """Encode a registration in version 5.

    Host and port are those of the first PLAINTEXT endpoint, for clients before Kafka 0.9.
    """
    plain = next((each for each in broker.endpoints if each.security_protocol == "PLAINTEXT"), None)
    document: dict[str, Any] = {
        "version": 5,
        "host": plain.host if plain else None,
        "port": plain.port if plain else -1,
        "endpoints": [f"{each.listener}://{_bracketed(each.host)}:{each.port}" for each in broker.endpoints],
        "jmx_port": broker.jmx_port,
        "timestamp": str(now_ms),
        "listener_security_protocol_map": {
            each.listener: each.security_protocol for each in broker.endpoints
        },
        "features": broker.features,
    }
    if broker.rack is not None:
        document["rack"] = broker.rack
    if broker.is_shutting_down:
        document[_SHUTTING_DOWN] = True
    if broker.is_logd:
        document[_LOGD] = True
    if broker.logs_in:
        document[_BROKER_LOGIN] = True
    return _encode(document)


def decode_registration(broker_id: int, data: bytes) -> Registration:
    """Decode a registration of version 1 or later. Raises BadZnode."""
    path, remedy = paths.broker(broker_id), "restart that broker, which registers itself again"
    document = decoded(path, data, _Registration, remedy)
    if document.version < 1:
        raise BadZnode(path, data, f"version {document.version} is unknown", remedy)
    if document.version == 1:
        endpoints: tuple[Endpoint, ...] = (
            Endpoint("PLAINTEXT", document.host or "", document.port, "PLAINTEXT"),
        )
    else:
        protocols = {name.upper(): protocol for name, protocol in document.protocols.items()}
        endpoints = tuple(_endpoint(path, data, text, protocols) for text in document.endpoints)
    return Registration(
        endpoints=endpoints,
        rack=document.rack,
        jmx_port=document.jmx_port,
        is_shutting_down=document.is_shutting_down,
        is_logd=document.is_logd,
        logs_in=document.logs_in,
        features=document.features or {},
    )


def _endpoint(path: str, data: bytes, text: str, protocols: Mapping[str, str]) -> Endpoint:
    match = _ENDPOINT.fullmatch(text)
    if match is None:
        raise BadZnode(path, data, f"endpoint {text!r} must be LISTENER://host:port", "restart that broker")
    listener = match[1].upper()
    return Endpoint(listener, match[2], int(match[3]), protocols.get(listener, listener))


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


# Settings, producer ids


def encode_config(configs: Mapping[str, str]) -> bytes:
    """Encode `/config/TYPE/ENTITY`."""
    return _encode({"version": 1, "config": dict(configs)})


def decode_config(path: str, data: bytes) -> dict[str, str]:
    """Return the settings in `/config/TYPE/ENTITY`; none if the value is not a JSON object, as in Kafka.

    Raises BadZnode if the value of a setting is not a string; it does not quote users' credentials.
    """
    try:
        document = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return {}
    configs = document.get("config") if isinstance(document, dict) else None
    if not isinstance(configs, dict):
        return {}
    try:
        return msgspec.convert(configs, dict[str, str])
    except msgspec.ValidationError as error:
        shown = b"[hidden]" if path.startswith(_SECRET_CONFIGS) else data
        raise BadZnode(path, shown, str(error), "set that setting again") from None


def encode_config_change(entity_path: str) -> bytes:
    """Encode the sequential znode that makes brokers read the settings of `topics/T` or `brokers/N` again."""
    return _encode({"version": 2, "entity_path": entity_path})


def decode_config_change(path: str, data: bytes) -> str:
    """Return the entity's path, such as `topics/T`. Raises BadZnode.

    Version 1 (Kafka 0.9) has the type and the name of the entity in two fields.
    """
    document = decoded(path, data, _ConfigChange, "delete it")
    if document.entity_path is not None:
        return document.entity_path
    if document.entity_type is None or document.entity_name is None:
        raise BadZnode(path, data, "it names no entity", "delete it")
    return f"{document.entity_type}/{document.entity_name}"


class ProducerIdBlock(NamedTuple):
    """Producer ids `start` to `end`, both included, which `broker_id` may give out."""

    broker_id: int
    start: int
    end: int


def encode_producer_ids(block: ProducerIdBlock) -> bytes:
    """Encode `/latest_producer_id_block`."""
    return _encode(
        {
            "version": 1,
            "broker": block.broker_id,
            "block_start": str(block.start),
            "block_end": str(block.end),
        }
    )


def decode_producer_ids(data: bytes) -> ProducerIdBlock:
    """Decode `/latest_producer_id_block`. Raises BadZnode.

    If an id were given twice, batches of the second producer would be dropped as duplicates of the first
    one's.
    """
    path, remedy = paths.PRODUCER_ID_BLOCK, "write a block beyond all ids that were ever given"
    document = decoded(path, data, _ProducerIds, remedy)
    try:
        return ProducerIdBlock(document.broker, int(document.block_start), int(document.block_end))
    except ValueError as error:
        raise BadZnode(path, data, str(error), remedy) from None


# The move of a standalone broker's metadata


class MoveZnode(NamedTuple):
    """The standalone broker whose metadata is being moved here."""

    cluster_id: str
    broker_id: int


def encode_move(move: MoveZnode) -> bytes:
    """Encode `/millstream/move`."""
    return _encode({"version": 1, "cluster_id": move.cluster_id, "broker": move.broker_id})


def decode_move(data: bytes) -> MoveZnode:
    """Decode `/millstream/move`. Raises BadZnode."""
    document = decoded(paths.MOVE, data, _Move, "take another chroot for the move")
    return MoveZnode(document.cluster_id, document.broker)


# Requests of operators' tools


def encode_reassignments(assignments: Mapping[TopicPartition, Iterable[int]]) -> bytes:
    """Encode `/admin/reassign_partitions`, as tools before Kafka 2.4 wrote it."""
    each = [
        {"topic": tp.topic, "partition": tp.partition, "replicas": list(replicas)}
        for tp, replicas in assignments.items()
    ]
    return _encode({"version": 1, "partitions": each})


def decode_reassignments(data: bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the target replicas by partition. Raises BadZnode."""
    document = decoded(paths.REASSIGN_PARTITIONS, data, _Reassignments, "delete it")
    return {TopicPartition(each.topic, each.partition): each.replicas for each in document.partitions}


def encode_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    """Encode `/admin/preferred_replica_election`, or the notification of a changed ISR."""
    each = [{"topic": tp.topic, "partition": tp.partition} for tp in partitions]
    return _encode({"version": 1, "partitions": each})


def decode_partitions(path: str, data: bytes) -> set[TopicPartition]:
    """Decode the partitions in `/admin/preferred_replica_election` or in a changed ISR. Raises BadZnode."""
    document = decoded(path, data, _Partitions, "delete it")
    return {TopicPartition(each.topic, each.partition) for each in document.partitions}


# The JSON of the znodes


class _Controller(msgspec.Struct):
    brokerid: int
    kraftControllerEpoch: int | None = None


class _ClusterId(msgspec.Struct):
    id: str


_SHUTTING_DOWN = "millstream_is_shutting_down"
_LOGD = "millstream_logd"
_BROKER_LOGIN = "millstream_broker_login"


class _Registration(
    msgspec.Struct,
    rename={
        "protocols": "listener_security_protocol_map",
        "is_shutting_down": _SHUTTING_DOWN,
        "is_logd": _LOGD,
        "logs_in": _BROKER_LOGIN,
    },
):
    version: int
    jmx_port: int
    host: str | None = None
    port: int = -1
    endpoints: tuple[str, ...] = ()
    rack: str | None = None
    protocols: dict[str, str] = {}
    is_shutting_down: bool = False
    is_logd: bool = False
    logs_in: bool = False
    features: dict[str, Any] | None = None


class _ConfigChange(msgspec.Struct):
    entity_path: str | None = None
    entity_type: str | None = None
    entity_name: str | None = None


class _ProducerIds(msgspec.Struct):
    broker: int
    block_start: str
    block_end: str


class _Move(msgspec.Struct):
    cluster_id: str
    broker: int


class _Reassignment(msgspec.Struct):
    topic: str
    partition: int
    replicas: tuple[int, ...]


class _Reassignments(msgspec.Struct):
    partitions: list[_Reassignment]


class _Partition(msgspec.Struct):
    topic: str
    partition: int


class _Partitions(msgspec.Struct):
    partitions: list[_Partition]


def decoded(path: str, data: bytes, kind: type[T], remedy: str) -> T:
    """Return the JSON value as an object of the class `kind`, without unknown fields.

    Raises BadZnode with `path`, the error and `remedy` if the value is not valid JSON of that class.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise BadZnode(path, data, str(error), remedy) from None
