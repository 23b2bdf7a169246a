"""Topologies inside a Faust worker, and Faust's codecs and records as serdes.

    app = faust.App("shop", broker="kafka://localhost:9092")
    orders = builder.stream("orders", key_serde=str, value_serde=record_serde(Order))
    ...
    add_topology(app, builder.build())

``faust -A shop worker`` then runs Faust's agents and the topology side by side, in one event loop; the
topology starts with the app and ends with it. Needs the extra ``faust``, imported when a function is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from streams.config import StreamsConfig
from streams.runtime.app import KafkaStreams
from streams.serdes import Serde
from streams.topology import Topology

if TYPE_CHECKING:
    import faust
    from mode import Service

R = TypeVar("R")


class CodecSerde(Serde[Any]):
    """Values through a Faust codec, by name (``"json"``, ``"json|binary"``) or instance."""

    def __init__(self, codec: Any) -> None:
        from faust.serializers.codecs import get_codec

        self._codec = get_codec(codec)

    def serialize(self, value: Any) -> bytes:
        data: bytes = self._codec.dumps(value)
        return data

    def deserialize(self, data: bytes) -> Any:
        return self._codec.loads(data)


class RecordSerde(Serde[R]):
    """Instances of a ``faust.Record``, by the record's own serializer (JSON unless it says otherwise)."""

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
    """A serde of a Faust codec."""
    return CodecSerde(codec)


def record_serde(record: type[R]) -> Serde[R]:
    """A serde of a Faust record class."""
    return RecordSerde(record)


def topology_service(streams: KafkaStreams) -> type[Service]:
    """A ``mode.Service`` class that starts an application, closes it, and crashes if it ends by itself."""
    from mode import Service

    class TopologyService(Service):
        """Runs a stream topology for as long as the worker lives."""

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
    """Run a topology with a Faust app; call before the app starts.

    Unless settings say otherwise the cluster is the app's, and the application id is the app's with
    ``-streams`` behind it: the app's own id is its agents' group.
    """
    if config is None:
        settings.setdefault("application_id", f"{app.conf.id}-streams")
        settings.setdefault(
            "bootstrap_servers", ",".join(f"{url.host}:{url.port}" for url in app.conf.broker)
        )
    streams = KafkaStreams(topology, config, **settings)
    app.service(topology_service(streams))
    return streams
