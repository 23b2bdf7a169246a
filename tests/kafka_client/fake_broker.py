"""A scripted broker: answers as the test says, so that every fault can be had at will.

    async with FakeBroker() as broker:
        broker.on(ApiKey.HEARTBEAT, lambda asked: HeartbeatResponse(error_code=27))
        async with Client(broker.bootstrap) as client: ...

A script gets a `ReceivedRequest`, and may be async. It returns a response message, whole frames as bytes, CUT
(close the connection) or SILENCE (no answer). Of a list of scripts each answers one request, and the last one
all later ones. ApiVersions, Metadata, FindCoordinator and InitProducerId are answered unless scripted.
"""

from __future__ import annotations

import asyncio
import inspect
import ssl
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from kafka_client.errors import ErrorCode
from kafka_client.records import FileSlice
from kafka_client.wire import ApiKey, Message, decode, decode_request_header, encode_response, request_class
from kafka_client.wire.fetch import PartitionFetched, encode_fetch_response
from kafka_client.wire.message import NO_UUID
from kafka_client.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from kafka_client.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kafka_client.wire.messages.init_producer_id import InitProducerIdResponse
from kafka_client.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka_client.wire.produce import PartitionProduced, decode_produce_request, encode_produce_response
from tests.support.waiting import until

CUT = "cut"
SILENCE = "silence"
TOPIC_ID = b"fake topic's id."

SERVED = {
    ApiKey.PRODUCE: (3, 12),
    ApiKey.FETCH: (4, 17),
    ApiKey.LIST_OFFSETS: (1, 9),
    ApiKey.METADATA: (0, 13),
    ApiKey.OFFSET_COMMIT: (2, 9),
    ApiKey.OFFSET_FETCH: (1, 9),
    ApiKey.FIND_COORDINATOR: (0, 6),
    ApiKey.JOIN_GROUP: (0, 9),
    ApiKey.HEARTBEAT: (0, 4),
    ApiKey.LEAVE_GROUP: (0, 5),
    ApiKey.SYNC_GROUP: (0, 5),
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.SASL_HANDSHAKE: (0, 1),
    ApiKey.SASL_AUTHENTICATE: (0, 2),
    ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.INIT_PRODUCER_ID: (0, 5),
    ApiKey.DESCRIBE_CLUSTER: (0, 1),
}


@dataclass(frozen=True)
class ReceivedRequest:
    """A request as the broker received it."""

    api_key: int
    version: int
    correlation_id: int
    message: Any

    def produced(self, *results: tuple[int, int, int], throttle_time_ms: int = 0) -> bytes:
        """Return the response to a Produce of one topic; `results`: (partition, error code, base offset)."""
        topic = self.message.topics[0][0]
        answers = [PartitionProduced(p, code, offset) for p, code, offset in results]
        return encode_produce_response(
            [(topic, answers)], self.version, self.correlation_id, throttle_time_ms
        )

    def fetched(self, *results: PartitionFetched[FileSlice]) -> bytes:
        """Return the response to a Fetch of one topic."""
        topic = TOPIC_ID if self.version >= 13 else self.message.topics[0].topic
        chunks = encode_fetch_response([(topic, list(results))], self.version, self.correlation_id)
        return b"".join(chunk for chunk in chunks if isinstance(chunk, bytes))


Script = Callable[[ReceivedRequest], Any]


class FakeBroker:
    """A scripted broker: alone in its cluster as node 1, or any node of `nodes` (id → broker)."""

    def __init__(self, node_id: int = 1, nodes: dict[int, FakeBroker] | None = None) -> None:
        self.node_id = node_id
        self.nodes = {node_id: self} if nodes is None else nodes
        self.nodes[node_id] = self
        self.port = 0
        self.served = dict(SERVED)
        self.topics: dict[str, dict[int, int]] = {"t": {0: node_id}}
        """Topic → partition → leader."""
        self.leader_epochs: dict[str, dict[int, int]] = {}
        """Topic → partition → leader epoch, where the broker reports one."""
        self.topic_ids: dict[str, bytes] = {}
        """Topic → id, where it is not TOPIC_ID."""
        self.requests: list[ReceivedRequest] = []
        self.connections = 0
        self.tls: ssl.SSLContext | None = None
        self._scripts: dict[int, list[Script]] = defaultdict(list)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def on(self, api_key: ApiKey, *scripts: Script) -> None:
        self._scripts[api_key] = list(scripts)

    def count(self, api_key: ApiKey) -> int:
        return sum(request.api_key == api_key for request in self.requests)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await until(lambda: not self._writers)
        await self._server.wait_closed()

    def cut_all(self) -> None:
        """Close every connection."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        self.connections += 1
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                answer = await self._answer(await reader.readexactly(size))
                if answer == CUT:
                    break
                if answer is not None:
                    writer.write(answer)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.transport.abort()
            self._writers.discard(writer)

    async def _answer(self, data: bytes) -> Any:
        header = decode_request_header(data)
        newest = self.served.get(ApiKey.API_VERSIONS, (0, 0))[1]
        if header.api_key == ApiKey.API_VERSIONS and header.version > newest:
            refused = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=self._ranges())
            return encode_response(refused, 0, header.correlation_id)
        if header.api_key == ApiKey.PRODUCE:
            message: Any = decode_produce_request(data, header.version, header.body)
        else:
            message = decode(request_class(header.api_key), header.version, data, header.body)
        request = ReceivedRequest(header.api_key, header.version, header.correlation_id, message)
        self.requests.append(request)
        scripts = self._scripts[header.api_key]
        script = scripts.pop(0) if len(scripts) > 1 else scripts[0] if scripts else self._by_itself
        answer = script(request)
        if inspect.isawaitable(answer):
            answer = await answer
        if answer == SILENCE:
            return None
        if isinstance(answer, Message):
            return encode_response(answer, header.version, header.correlation_id)
        return answer

    def _by_itself(self, request: ReceivedRequest) -> Message:
        if request.api_key == ApiKey.API_VERSIONS:
            return ApiVersionsResponse(api_keys=self._ranges())
        if request.api_key == ApiKey.METADATA:
            return self.metadata(request)
        if request.api_key == ApiKey.FIND_COORDINATOR:
            here: dict[str, Any] = {"node_id": self.node_id, "host": "127.0.0.1", "port": self.port}
            return FindCoordinatorResponse(coordinators=[Coordinator(**here)], **here)
        if request.api_key == ApiKey.INIT_PRODUCER_ID:
            return InitProducerIdResponse(producer_id=77, producer_epoch=0)
        raise AssertionError(f"no script for {request}")

    def _ranges(self) -> list[ApiVersion]:
        ranges = self.served.items()
        return [ApiVersion(api_key=k, min_version=a, max_version=b) for k, (a, b) in ranges]

    def metadata(self, request: ReceivedRequest) -> MetadataResponse:
        named = request.message.topics
        names = list(self.topics) if named is None else [topic.name for topic in named]
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=n, host="127.0.0.1", port=b.port)
                for n, b in self.nodes.items()
            ],
            cluster_id="fake",
            controller_id=self.node_id,
            topics=[
                MetadataResponseTopic(
                    error_code=0 if name in self.topics else 3,
                    name=name,
                    topic_id=self.topic_ids.get(name, TOPIC_ID if name in self.topics else NO_UUID),
                    partitions=[
                        MetadataResponsePartition(
                            partition_index=p,
                            leader_id=leader,
                            leader_epoch=self.leader_epochs.get(name, {}).get(p, -1),
                        )
                        for p, leader in self.topics.get(name, {}).items()
                    ],
                )
                for name in names
            ],
        )
