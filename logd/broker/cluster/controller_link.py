"""The way to the cluster's controller, for what only it can carry out (KIP-590).

A request of a client goes there as it came, in an Envelope with the client's principal and address; so do the
broker's own. Connections, and finding the controller, are left to the given `ControllerLink`; which requests
go there, and the other end, to ``logd.api``.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import Protocol

from kafka_client.acl import BROKER_PRINCIPAL
from kafka_client.errors import ErrorCode, KafkaError, MalformedMessage
from kafka_client.wire import decode, decode_response_header, encode, encode_request
from kafka_client.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafka_client.wire.messages.default_principal_data import DefaultPrincipalData
from kafka_client.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse

ITSELF = BROKER_PRINCIPAL
"""In whose name a broker asks for what no client's principal stands behind."""

_PRINCIPAL_VERSION = b"\0\0"
"""In front of the principal: Kafka's own form, as any version of its brokers reads it."""
_CREATE_TOPICS_VERSION = 7
_TIMEOUT_MS = 30_000


class ControllerLink(Protocol):
    """The connection of a broker in a cluster to its controller; a standalone broker has none."""

    @property
    def is_active(self) -> bool:
        """True if this broker is the controller: then nothing is forwarded."""

    async def forward(self, envelope: EnvelopeRequest) -> EnvelopeResponse:
        """Send a request to the controller. Return its response, whose error is never NOT_CONTROLLER.

        NOT_CONTROLLER, a lost connection and an unknown controller are tried again, with the controller known
        by then. Raises KafkaError(REQUEST_TIMED_OUT) if all attempts fail for too long.
        """


def in_envelope(request: bytes, principal: str, client_host: str) -> EnvelopeRequest:
    """Return the envelope of a request, header and body. ``principal`` is Type:name, ``client_host`` an
    address.
    """
    kind, _, name = principal.partition(":")
    data = encode(DefaultPrincipalData(type_=kind, name=name), 0)
    return EnvelopeRequest(
        request_data=request,
        request_principal=_PRINCIPAL_VERSION + data,
        client_host_address=_packed(client_host),
    )


def principal_of(envelope: EnvelopeRequest) -> str:
    """Return the client's principal. Raises KafkaError(PRINCIPAL_DESERIALIZATION_FAILURE)."""
    data = envelope.request_principal or b""
    try:
        if data[:2] != _PRINCIPAL_VERSION:
            raise MalformedMessage(f"a principal of version {data[:2].hex() or 'none'}, 0 is known")
        principal = decode(DefaultPrincipalData, 0, data, 2)
    except MalformedMessage as error:
        raise KafkaError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, str(error)) from None
    return f"{principal.type_}:{principal.name}"


def client_host_of(envelope: EnvelopeRequest) -> str:
    """Return the client's address. Raises KafkaError(INVALID_REQUEST) unless it has 4 or 16 bytes."""
    address = envelope.client_host_address
    family = {4: socket.AF_INET, 16: socket.AF_INET6}.get(len(address))
    if family is None:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"a client's address of {len(address)} bytes: it has 4, or 16"
        )
    return socket.inet_ntop(family, address)


def _packed(host: str) -> bytes:
    """Return an address's bytes, empty if `host` is no address; the controller refuses empty ones."""
    address, _, _ = host.partition("%")  # a link-local one names its interface
    try:
        return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
    except OSError:
        return b""


class RemoteCreations:
    """Topics that were only asked about, created by the controller: each asked for once at a time, however
    many clients wait for it.
    """

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[None]] = {}

    async def create(self, link: ControllerLink, topic: CreatableTopic) -> None:
        """Have the controller create a topic. Return also if it exists already.

        Raises the other KafkaErrors of CreateTopics.
        """
        running = self._running.get(topic.name)
        if running is None:
            running = asyncio.create_task(_create_there(link, topic))
            self._running[topic.name] = running
            running.add_done_callback(lambda done: self._ended(topic.name, done))
        await asyncio.shield(running)

    def _ended(self, name: str, done: asyncio.Task[None]) -> None:
        del self._running[name]
        if not done.cancelled():
            done.exception()  # seen, whether or not somebody still waits for it


async def _create_there(link: ControllerLink, topic: CreatableTopic) -> None:
    message = CreateTopicsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS)
    request = encode_request(message, _CREATE_TOPICS_VERSION, 0, None)[4:]
    envelope = await link.forward(in_envelope(request, ITSELF, "127.0.0.1"))
    if envelope.error_code:
        raise KafkaError(envelope.error_code, f"the controller was not asked to create topic {topic.name}")
    answer = envelope.response_data or b""
    _, body = decode_response_header(CreateTopicsResponse.API_KEY, _CREATE_TOPICS_VERSION, answer)
    for result in decode(CreateTopicsResponse, _CREATE_TOPICS_VERSION, answer, body).topics:
        if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise KafkaError(result.error_code, result.error_message or "")


def topic_to_create(
    name: str, partitions: int, replication_factor: int, configs: Mapping[str, str]
) -> CreatableTopic:
    """Return a topic of a CreateTopics request."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
