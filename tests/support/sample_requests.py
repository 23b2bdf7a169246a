"""A plausible request for every API and version that the broker serves, to send as it is or damaged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kafka_client.records import build_batch
from kafka_client.wire import Message, encode_request, request_class
from kafka_client.wire.message import Kind
from kafka_client.wire.produce import encode_produce_request
from kafka_client.wire.schema import Array, Field, Shape, fields_of
from logd.api.table import APIS, PRODUCE

VALUES: Mapping[Kind, Any] = {
    Kind.BOOLEAN: False,
    Kind.FLOAT64: 1.0,
    Kind.STRING: "sample",
    Kind.UUID: b"sixteen bytes ok",
    Kind.BYTES: b"\0\1\0\0\0\0",
    Kind.RECORDS: b"",
}
"""Values of a sample's fields, by kind; integers are 1."""

MORE: Mapping[str, Any] = {
    # Nothing waits, and groups do not form.
    "max_wait_ms": 1,
    "timeout_ms": 1,
    "max_bytes": 1000,
    "generation_id": 3,
    "client_software_version": "1",
    # Metadata shall not create topics, so that a run of samples leaves nothing behind.
    "allow_auto_topic_creation": False,
    "validate_only": True,
}

BATCH = build_batch([(1, b"key", b"value", (("header", b"x"),)), (2, None, b"v", ())])


def served() -> Iterator[tuple[int, int]]:
    """(API key, version) of everything that is served."""
    for key, api in APIS.items():
        for version in range(api.serves_from, api.last + 1):
            yield key, version


def sample_frame(key: int, version: int) -> bytes:
    """Return a whole request frame, its length in front."""
    if key == PRODUCE:
        topic = VALUES[Kind.UUID] if version >= 13 else "sample"
        chunks = encode_produce_request([(topic, [(0, BATCH), (1, BATCH)])], version, 7, "sample")
        return b"".join(bytes(chunk) for chunk in chunks)
    return encode_request(sample(request_class(key), version), version, 7, "sample")


def sample(cls: type[Message], version: int) -> Message:
    """Return a message with a value in every field."""
    return cls(**{field.name: _value(field, field.shape, version) for field in fields_of(cls, version)})


def _value(field: Field, shape: Shape, version: int) -> Any:
    if field.name in MORE:
        return MORE[field.name]
    if isinstance(shape, Array):
        return [_value(Field.bare(shape.element), shape.element, version) for _ in range(2)]
    if not isinstance(shape, Kind):
        return sample(shape, version)
    return VALUES.get(shape, 1)
