"""A dry run of a connector: everything that its start needs is tried, and nothing is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from connect.config import SinkConfig
from connect.errors import ConnectError, MillstreamError
from connect.runtime.calls import PluginCalls
from connect.runtime.client_settings import group_id
from connect.runtime.clients import Clients
from connect.runtime.connector_check import CheckedConfig, check_config
from connect.runtime.topics_regex import matches
from connect.runtime.worker_config import WorkerConfig
from kafka_client import Admin, Client, TopicMetadata, TopicPartition


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one step: `subject` is what was tried, `text` what came of it."""

    subject: str
    state: Literal["ok", "failed", "unchecked"]
    text: str


async def dry_run(worker: WorkerConfig, raw: Mapping[str, Any], *, timeout: float) -> AsyncIterator[Finding]:
    """Try the steps of a connector's start, each for at most `timeout` seconds, and yield each result.

    The steps are its config, the brokers, a sink's topics and its group, and the other system. A failed step
    does not end the run, except for an invalid config.
    """
    try:
        checked = check_config(worker, raw)
    except MillstreamError as e:
        yield Finding("config", "failed", str(e))
        return
    yield Finding("config", "ok", f"{checked.name}, a {checked.type} with at most {checked.tasks_max} tasks")
    clients = Clients(worker)
    try:
        async for finding in _log_findings(clients, checked, worker, timeout):
            yield finding
    finally:
        await clients.close()
    yield await _system_finding(checked, timeout)


async def _log_findings(
    clients: Clients, checked: CheckedConfig, worker: WorkerConfig, timeout: float
) -> AsyncIterator[Finding]:
    servers = ",".join(worker.bootstrap_servers)
    client = clients.of("sink", checked.config)  # a source's client would create the topics it asks for
    try:
        async with asyncio.timeout(timeout):
            await client.connect()
            topics = await Admin(client).list_topics()
    except (MillstreamError, TimeoutError) as e:
        yield Finding("brokers", "failed", _reason(e, f"{servers} did not answer", timeout))
        return
    yield Finding("brokers", "ok", f"{servers}, {len(topics)} topics")
    if checked.type == "sink":
        try:
            async with asyncio.timeout(timeout):
                yield await _topics_finding(client, checked, topics)
                yield await _group_finding(client, checked, worker)
        except (MillstreamError, TimeoutError) as e:
            yield Finding("topics", "failed", _reason(e, "the brokers did not answer", timeout))


async def _topics_finding(
    client: Client, checked: CheckedConfig, topics: Mapping[str, TopicMetadata]
) -> Finding:
    sink = SinkConfig.parse(checked.config)
    if sink.topics_pattern is not None:
        names = [name for name, topic in topics.items() if matches(sink.topics_pattern, topic)]
        if not names:
            return Finding("topics", "failed", f"no topic matches topics.regex={sink.topics_regex}")
    else:
        names = sink.topics
        if missing := [name for name in names if name not in topics]:
            return Finding("topics", "failed", f"there is no topic {', '.join(missing)}")
    partitions = [TopicPartition(name, p) for name in names for p in topics[name].partitions]
    await Admin(client).list_offsets(dict.fromkeys(partitions, "latest"))  # shows that reading is allowed
    return Finding("topics", "ok", f"{', '.join(names)}, {len(partitions)} partitions")


async def _group_finding(client: Client, checked: CheckedConfig, worker: WorkerConfig) -> Finding:
    group = group_id(checked.name, worker.raw, checked.config)
    committed = await Admin(client).list_group_offsets(group)
    text = f"offsets of {len(committed)} partitions" if committed else "no offsets yet"
    return Finding("group", "ok", f"{group}, {text}")


async def _system_finding(checked: CheckedConfig, timeout: float) -> Finding:
    calls = PluginCalls(f"{checked.name}-dry-run")
    name = checked.plugin.__name__
    try:
        async with asyncio.timeout(timeout):
            await calls.call(checked.plugin().check_target, checked.config)
    except NotImplementedError:
        return Finding("system", "unchecked", f"{name} has no check of the system that it connects to")
    except TimeoutError:
        return Finding("system", "failed", f"{name} did not reach the system within {timeout:g} s")
    except Exception as e:
        return Finding("system", "failed", str(e) if isinstance(e, ConnectError) else repr(e))
    finally:
        calls.close()
    return Finding("system", "ok", f"{name} reaches it")


def _reason(error: Exception, silence: str, timeout: float) -> str:
    return f"{silence} within {timeout:g} s" if isinstance(error, TimeoutError) else str(error)
