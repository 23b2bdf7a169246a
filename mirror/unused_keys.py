"""Warnings about keys of `mm2.properties` that have no effect here.

MirrorMaker's own keys share one log line; an unknown key is logged with the nearest known one. `config` says
which keys have an effect.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping

from kafka_client.properties import CLIENT, OF_JAVA, nearest
from kafka_client.security.keys import is_security_key

_log = logging.getLogger(__name__)

_KEYS = """
    access.control.allow.methods access.control.allow.origin admin.listeners admin.timeout.ms
    bootstrap.servers config.action.reload
    config.property.filter.class config.providers config.storage.replication.factor config.storage.topic
    connect.protocol connector.class connector.client.config.override.policy connector.plugin.version
    consumer.poll.timeout.ms dedicated.mode.enable.internal.rest
    errors.log.enable errors.log.include.messages errors.retry.delay.max.ms
    errors.retry.timeout errors.tolerance exactly.once.source.support exactly.once.support
    forwarding.admin.class group.filter.class group.id header.converter
    header.converter.plugin.version heartbeat.interval.ms
    inter.worker.key.generation.algorithm inter.worker.key.size
    inter.worker.key.ttl.ms inter.worker.signature.algorithm inter.worker.verification.algorithms
    key.converter key.converter.plugin.version listeners metric.names.formats name
    offset.flush.interval.ms offset.flush.timeout.ms offset.storage.partitions
    offset.storage.replication.factor offset.storage.topic offsets.storage.topic plugin.discovery
    plugin.path predicates rebalance.timeout.ms
    response.http.headers.config
    rest.advertised.host.name rest.advertised.listener rest.advertised.port rest.extension.classes
    scheduled.rebalance.max.delay.ms session.timeout.ms source.cluster.alias status.storage.partitions
    status.storage.replication.factor status.storage.topic
    sync.topic.acls.enabled sync.topic.acls.interval.seconds
    sync.topic.configs.interval.seconds target.cluster.alias task.shutdown.graceful.timeout.ms tasks.max
    tasks.max.enforce topic.creation.enable topic.creation.groups topic.filter.class
    topic.tracking.allow.reset topic.tracking.enable transaction.boundary
    transaction.boundary.interval.ms transforms value.converter value.converter.plugin.version
    worker.sync.timeout.ms worker.unsync.backoff.ms
"""
_OF_MIRRORMAKER = frozenset((*_KEYS.split(), *OF_JAVA, *CLIENT))
"""Keys of MirrorMaker 4.3, of the Connect worker in it, and of clients where none is named."""
_OF_OTHERS = """
    admin. consumer. producer. source. target. transforms. predicates. key.converter. value.converter.
    header.converter. listeners. admin.listeners. topic.creation. metrics.context. config.providers.
"""
_PREFIXES = tuple(_OF_OTHERS.split())
"""Prefixes of keys that MirrorMaker passes to clients and plugins."""


def warn_unused(
    properties: Mapping[str, str], aliases: Collection[str], flows: Iterable[str], effective: Collection[str]
) -> None:
    """Log the keys without effect, except those with an alias as prefix (`a.key`), which `config` reports.

    `flows` are the prefixes of flows (`a->b.`). `effective` are the keys with an effect, without prefix.
    """
    of_clusters, of_flows, unused = tuple(f"{alias}." for alias in aliases), tuple(flows), []
    for written in properties:
        flow = next((flow for flow in of_flows if written.startswith(flow)), "")
        key = written[len(flow) :]
        if written.startswith(of_clusters) or key in effective:
            continue
        if not flow and (is_security_key(key) or key.removeprefix("consumer.") in effective):
            continue
        if key in _OF_MIRRORMAKER or key.startswith(_PREFIXES) or is_security_key(key):
            unused.append(written)
        else:
            near = nearest(key, effective)
            _log.warning("%s is not known and has no effect%s", written, f"; {near}?" if near else "")
    if unused:
        _log.warning("without effect here: %s", ", ".join(sorted(unused)))
