"""Warnings about keys of `mm2.properties` that have no effect here.

MirrorMaker's own keys share one log line; an unknown key is logged with the nearest known one. `config` says
which keys have an effect.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kafka_client.properties import CLIENT, CONSUMER, OF_JAVA, PRODUCER, TRANSACTIONAL, nearest
from kafka_client.security.keys import SECURITY_KEYS, WITHOUT_EFFECT, is_security_key
from mirror.client_keys import MAIN_ROLES, SERVERS

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
_OF_PLUGINS = """
    transforms. predicates. key.converter. value.converter. header.converter. listeners. admin.listeners.
    topic.creation. metrics.context. config.providers.
"""
_PLUGIN_PREFIXES = tuple(_OF_PLUGINS.split())
"""Prefixes of keys that MirrorMaker passes to plugins."""
_RENAMED = {
    "topics.blacklist": "topics.exclude",
    "groups.blacklist": "groups.exclude",
    "config.properties.blacklist": "config.properties.exclude",
    "topics.whitelist": "topics",
    "groups.whitelist": "groups",
}
"""Names that MirrorMaker had before Kafka 4, and the ones that have an effect."""
_SHARED = (*CLIENT, *SECURITY_KEYS, SERVERS)
"""Keys of a cluster (`a.KEY`, `source.cluster.KEY`) with an effect."""
_OF_ROLES = {
    "admin": frozenset({*_SHARED, *OF_JAVA, *WITHOUT_EFFECT}),
    "consumer": frozenset({*_SHARED, *CONSUMER, *OF_JAVA, *WITHOUT_EFFECT}),
    "producer": frozenset({*_SHARED, *PRODUCER, *TRANSACTIONAL, *OF_JAVA, *WITHOUT_EFFECT}),
}
"""Every key of Kafka's clients, by role."""


@dataclass(frozen=True, slots=True)
class _Advice:
    """Advice on a key without effect: whether the key is known, and if not, the nearest known one."""

    is_known: bool
    near: str | None = None


def warn_unused(properties: Mapping[str, str], aliases: Collection[str], effective: Collection[str]) -> None:
    """Log the keys without effect.

    `effective` are the keys with an effect, without the prefixes of flows, clusters and clients.
    """
    flows = [f"{a}->{b}." for a in aliases for b in aliases if a != b]
    owners = _owners(aliases)
    unused = []
    for written in properties:
        flow = next((flow for flow in flows if written.startswith(flow)), "")
        key = written[len(flow) :]
        if key in effective or (is_security_key(key) and not flow):
            continue
        advice, prefix = _of_flow(key, effective), flow
        if not advice.is_known and (owner := owners.match(key)) is not None and owner[0]:
            of_client, prefix = _of_client(owner, key[owner.end() :]), flow + owner[0]
            if of_client is None:
                continue
            advice = of_client
        if advice.is_known:
            unused.append(written)
        else:
            near = f"; {prefix}{advice.near}?" if advice.near else ""
            _log.warning("%s is not known and has no effect%s", written, near)
    if unused:
        _log.warning("without effect here: %s", ", ".join(sorted(unused)))


def _owners(aliases: Collection[str]) -> re.Pattern[str]:
    """Return a pattern of what may stand before a key of clients: a side or an alias, and a role."""
    any_alias = "|".join(map(re.escape, aliases))
    return re.compile(
        rf"(?:(?P<side>source|target)\.(?:cluster\.)?|(?P<alias>{any_alias})\.)?"
        r"(?:(?P<role>admin|consumer|producer)\.(?:override\.)?)?"
    )


def _of_flow(key: str, effective: Collection[str]) -> _Advice:
    """Return the advice on a key of flows that has no effect."""
    if key in _OF_MIRRORMAKER or key.startswith(_PLUGIN_PREFIXES) or is_security_key(key):
        return _Advice(True)
    return _Advice(False, _RENAMED.get(key) or nearest(key, effective))


def _of_client(owner: re.Match[str], key: str) -> _Advice | None:
    """Return the advice on a key of a client, None if it has an effect."""
    side, role = owner["side"], owner["role"]
    if is_security_key(key) or (role is None and key in _SHARED):
        return None
    is_main = role in MAIN_ROLES.values() if side is None else role == MAIN_ROLES[side]
    if is_main and (key in CLIENT or (key == "auto.offset.reset" and role == "consumer")):
        return None
    if role is None:
        keys_of_java = _OF_MIRRORMAKER if owner["alias"] else frozenset(_SHARED)
    else:
        keys_of_java = _OF_ROLES[role]
    return _Advice(True) if key in keys_of_java else _Advice(False, nearest(key, {*keys_of_java, *_SHARED}))
