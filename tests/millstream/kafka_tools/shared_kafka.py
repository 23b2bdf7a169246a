"""Brokers of Apache Kafka that transcripts share, cleared of what earlier transcripts left.

Groups and topics are deleted, including Kafka's own topics and so the state of its coordinators. The broker's
dynamic settings must be as they were at the start. A broker that cannot be cleared is replaced. Producer ids
cannot be reset: a transcript that shows them needs its own broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from kafka_client import Admin, Client
from kafka_client.admin.configs import ResourceType
from kafka_client.errors import KafkaError
from tests.millstream.kafka_tools.settled import settle
from tests.support.apache_kafka import NODE_ID, ApacheKafka
from tests.support.logd_process import QUICK_GROUPS

SECONDS = 60
DYNAMIC = (2, 3)
"""Sources of dynamic settings: the broker's own, and those of all brokers."""
Dynamic = list[tuple[str, str | None]]


class SharedKafka:
    """Brokers of Apache Kafka, one per set of settings, below `folder`. They stop with the context."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._brokers: dict[frozenset[tuple[str, str]], tuple[ApacheKafka, Dynamic]] = {}
        self._stack = ExitStack()
        self._started = 0

    def cleared(self, settings: Mapping[str, str]) -> ApacheKafka:
        """Return a cleared broker with these settings, started if there is none."""
        key = frozenset({**QUICK_GROUPS, **settings}.items())
        if key in self._brokers:
            kafka, dynamic = self._brokers[key]
            if kafka.is_running and asyncio.run(_clear(kafka.bootstrap)) == dynamic:
                return kafka
            kafka.kill()
        self._started += 1
        kafka = self._stack.enter_context(ApacheKafka(self._folder / str(self._started), settings))
        dynamic_at_first = asyncio.run(_clear(kafka.bootstrap))
        assert dynamic_at_first is not None, "a new broker has groups"
        self._brokers[key] = kafka, dynamic_at_first
        return kafka

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)


async def _clear(bootstrap: str) -> Dynamic | None:
    """Delete all groups and topics. Return the dynamic settings, or None if a group remains."""
    async with asyncio.timeout(SECONDS), Client(bootstrap) as client:
        admin = Admin(client)
        try:
            groups = await admin.list_groups()
            for group in groups:
                if group.state != "Empty":
                    await admin.remove_members(group.group_id, "cleared")  # static ones, which do not leave
            await admin.delete_groups([group.group_id for group in groups], missing_ok=True)
        except KafkaError:
            return None
        await admin.delete_topics(await admin.list_topics())
        await settle(client)
        return await _dynamic(admin)


async def _dynamic(admin: Admin) -> Dynamic:
    named = [await admin.describe_configs(name, ResourceType.BROKER) for name in (str(NODE_ID), "")]
    return [
        (name, entry.value)
        for configs in named
        for name, entry in sorted(configs.items())
        if entry.source in DYNAMIC
    ]
