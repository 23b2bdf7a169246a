"""Setting client quotas, and clients that look at their waits."""

from __future__ import annotations

import select
from collections.abc import Mapping
from typing import Any, Final

from kafka_client.records import NewRecord
from kafka_client.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from tests.support.raw_client import RawClient

HEADROOM: Final = 300
"""More bytes than a Produce request of one record has besides the value."""


def alter_quotas(
    client: RawClient, entity: Mapping[str, str | None], quotas: Mapping[str, float | None]
) -> None:
    """Set the quotas of an entity, a name by type; None removes a quota, or is the default entity."""
    entry = EntryData(
        entity=[EntityData(entity_type=type, entity_name=name) for type, name in entity.items()],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in quotas.items()],
    )
    (answer,) = client.request(AlterClientQuotasRequest(entries=[entry]), 1).entries
    assert answer.error_code == 0, answer.error_message


def produce(client: RawClient, topic: str, size: int) -> Any:
    """Produce one record with a value of so many bytes; return the whole response."""
    record: NewRecord = (1_000, None, bytes(size), ())
    client.send_produce(topic, [record])
    return client.receive(0, 9)


def is_answered(client: RawClient) -> bool:
    """Return True if a response has arrived."""
    return bool(select.select([client.socket], [], [], 0)[0])
