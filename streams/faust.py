"""Topologies inside a Faust worker, and Faust's codecs and records as serdes.

    app = faust.App("shop", broker="kafka://localhost:9092")
    orders = builder.stream("orders", key_serde=str, value_serde=record_serde(Order))
    ...
    add_topology(app, builder.build())

    reviewed = through_agent(orders, review)  # an agent of the app's, as a node

``faust -A shop worker`` then runs Faust's agents and the topology in one event loop. The topology starts and
ends with the app. It needs the extra ``faust``, which is imported when a function here is called.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from streams.config import StreamsConfig
from streams.dsl import KStream
from streams.errors import TopologyError
from streams.runtime.app import KafkaStreams
from streams.serdes import Serde
from streams.topology import Topology

if TYPE_CHECKING:
    import faust
    from mode import Service

R = TypeVar("R")
K = TypeVar("K")


class CodecSerde(Serde[Any]):
    """The serde of a Faust codec, given by name (``"json"``, ``"json|binary"``) or as an instance."""

    def __init__(self, codec: Any) -> None:
        from faust.serializers.codecs import get_codec

        self._codec = get_codec(codec)

    def serialize(self, value: Any) -> bytes:
        data: bytes = self._codec.dumps(value)
        return data

    def deserialize(self, data: bytes) -> Any:
        return self._codec.loads(data)


class RecordSerde(Serde[R]):
    """The serde of a ``faust.Record`` class, by the record's own serializer, which is JSON by default."""

    def __init__(self, record: type[R]) -> None:
        model: Any = record
        self._loads: Callable[..., R] = model.loads
        self._serializer = model._options.serializer or "json"

    def serialize(self, value: R) -> bytes:
        record: Any = value
        data: bytes = record.dumps(serializer=self._serializer)
        return data

    def deserialize(self, data: bytes) -> R:
        return self._loads(data, serializer=self._serializer)


def codec_serde(codec: Any) -> Serde[Any]:
    """Return the serde of a Faust codec."""
    return CodecSerde(codec)


def record_serde(record: type[R]) -> Serde[R]:
    """Return the serde of a Faust record class."""
    return RecordSerde(record)


def topology_service(streams: KafkaStreams) -> type[Service]:
    """Return a ``mode.Service`` class that starts and closes an application.

    The service crashes if the application ends by itself.
    """
    from mode import Service

    class TopologyService(Service):
        """A service that runs a topology as long as the worker runs."""

        async def on_start(self) -> None:
            await streams.start()

        async def on_stop(self) -> None:
            await streams.close()

        @Service.task
        async def _watch(self) -> None:
            await self.wait_first(streams.wait_ended())
            if not self.should_stop:
                streams.check()

    return TopologyService


def add_topology(
    app: faust.App, topology: Topology, config: StreamsConfig | None = None, **settings: Any
) -> KafkaStreams:
    """Run a topology with a Faust app; call this before the app starts.

    By default the cluster is the app's, and the application id is the app's followed by ``-streams``, because
    the app's own id is the group of its agents.
    """
    if config is None:
        settings.setdefault("application_id", f"{app.conf.id}-streams")
        settings.setdefault(
            "bootstrap_servers", ",".join(f"{url.host}:{url.port}" for url in app.conf.broker)
        )
    streams = KafkaStreams(topology, config, **settings)
    app.service(topology_service(streams))
    return streams


def through_agent(stream: KStream[K, Any], agent: Any, **how: Any) -> KStream[K, Any]:
    """Have a Faust agent process a stream's records in this process, without a topic.

    The values that it yields for a record are forwarded under the record's key. ``how``: the keywords of
    `KStream.map_values_async`; ``max_in_flight`` is the agent's ``concurrency`` by default.

    The agent runs in ``concurrency`` actors, each with a record at a time; an actor that raises is started
    again. The agent may iterate over the stream, its ``events()`` or ``items()``. Faust's tables need events
    of a topic, so keep state in the topology. Raises TopologyError for an agent that is no generator.
    """
    if not inspect.isasyncgenfunction(getattr(agent, "fun", None)):
        raise TopologyError(f"{agent!r} is no Faust agent that yields: what would become of the records?")

    @asynccontextmanager
    async def actors() -> AsyncIterator[asyncio.Queue[_Actor]]:
        everyone = [_Actor(agent) for _ in range(agent.concurrency)]
        idle: asyncio.Queue[_Actor] = asyncio.Queue(len(everyone))
        for each in everyone:
            idle.put_nowait(each)
        try:
            yield idle
        finally:
            for each in everyone:
                await each.end()

    async def ask(key: Any, value: Any, idle: asyncio.Queue[_Actor]) -> list[Any]:
        actor = await idle.get()
        try:
            return await actor.replies(key, value)
        finally:
            idle.put_nowait(actor)

    how.setdefault("max_in_flight", agent.concurrency)
    return stream.flat_map_values_async(ask, context=actors, **how)


class _Actor:
    """A run of an agent's function, which receives one record after the other."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent
        self._yields: Any = None
        self._step: asyncio.Task[Any] | None = None
        """The wait for the agent's next reply, during which the agent may request its next record."""

    async def replies(self, key: Any, value: Any) -> list[Any]:
        """Return the values that the agent yields between this record and its request for the next one."""
        replies: list[Any] = []
        if self._yields is None:
            self._begin()
        self._asks.clear()
        self._inbox.put_nowait(_event(self._agent.app, key, value))
        try:
            while True:
                if self._step is None:
                    self._step = asyncio.ensure_future(anext(self._yields))
                asks = asyncio.ensure_future(self._asks.wait())
                try:
                    await asyncio.wait([self._step, asks], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    asks.cancel()
                if not self._step.done():
                    return replies
                step, self._step = self._step, None
                replies.append(step.result())
        except StopAsyncIteration:
            await self.end()
            if replies:
                return replies  # The agent ended after a reply: the next record starts another run.
            raise RuntimeError(f"{self._agent.name} ended without a reply") from None
        except BaseException:
            await self.end()
            raise

    def _begin(self) -> None:
        self._inbox: asyncio.Queue[Any] = asyncio.Queue(1)
        self._asks = asyncio.Event()
        self._yields = self._agent.fun(_AgentStream(self._events))

    async def _events(self) -> AsyncIterator[Any]:
        while True:
            if self._inbox.empty():
                self._asks.set()
            yield await self._inbox.get()

    async def end(self) -> None:
        """Cancel the agent's function."""
        step, yields, self._step, self._yields = self._step, self._yields, None, None
        if step is not None:
            step.cancel()
            await asyncio.wait([step])
        if yields is not None:
            await yields.aclose()


class _AgentStream:
    """The stream of an agent's function, which iterates over values, events, or keys and values."""

    def __init__(self, events: Callable[[], AsyncIterator[Any]]) -> None:
        self._events = events
        self.current_event: Any = None

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for event in self._events():
            self.current_event = event
            yield event.value

    async def events(self) -> AsyncIterator[Any]:
        async for event in self._events():
            self.current_event = event
            yield event

    async def items(self) -> AsyncIterator[tuple[Any, Any]]:
        async for event in self._events():
            self.current_event = event
            yield event.key, event.value

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"an agent in a topology iterates over its stream, .events() or .items(); .{name} needs a topic "
            "and Faust's own worker"
        )


def _event(app: Any, key: Any, value: Any) -> Any:
    import faust

    message: Any = None  # The record did not come from a topic.
    return faust.Event(app, key, value, {}, message)
