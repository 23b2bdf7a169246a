"""Kafka's keys that ``logd`` accepts without a warning, with a note that they have no effect.

Keys without effect that can be changed while running are declared in ``inert``.

Stock ``server.properties`` files contain many of these keys. A key that is not listed here, not declared and
not an old name is reported as a typing error.
"""

from __future__ import annotations

_KEYS = """
add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
alter.log.dirs.replication.quota.window.num
alter.log.dirs.replication.quota.window.size.seconds broker.heartbeat.interval.ms
broker.id.generation.enable broker.session.timeout.ms config.providers
controller.quorum.append.linger.ms controller.quorum.auto.join.enable controller.quorum.bootstrap.servers
controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms
controller.quorum.fetch.max.bytes controller.quorum.fetch.snapshot.max.bytes
controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms
controller.quorum.voters controller.quota.window.num controller.quota.window.size.seconds
controller.socket.timeout.ms cordoned.log.dirs
delete.records.purgatory.purge.interval.requests early.start.listeners
errors.deadletterqueue.auto.create.topics.enable errors.deadletterqueue.topic.name.prefix
fetch.purgatory.purge.interval.requests follower.fetch.last.tiered.offset.enable
group.consumer.assignment.interval.ms group.consumer.assignor.offload.enable group.consumer.assignors
group.consumer.heartbeat.interval.ms group.consumer.max.assignment.interval.ms
group.consumer.max.heartbeat.interval.ms group.consumer.max.session.timeout.ms group.consumer.max.size
group.consumer.migration.policy group.consumer.min.assignment.interval.ms
group.consumer.min.heartbeat.interval.ms group.consumer.min.session.timeout.ms
group.consumer.regex.refresh.interval.ms group.consumer.session.timeout.ms
group.coordinator.append.linger.ms group.coordinator.background.threads
group.coordinator.cached.buffer.max.bytes group.coordinator.rebalance.protocols group.coordinator.threads
initial.broker.registration.timeout.ms inter.broker.protocol.version kafka.metrics.polling.interval.secs
kafka.metrics.reporters log.dir.failure.timeout.ms log.message.downconversion.enable
log.message.format.version log.remote.copy.lag.bytes log.remote.copy.lag.ms
metadata.log.dir metadata.log.max.record.bytes.between.snapshots
metadata.log.max.snapshot.interval.ms metadata.log.segment.bytes metadata.log.segment.ms
metadata.max.idle.interval.ms metadata.max.retention.bytes metadata.max.retention.ms metric.reporters
metrics.num.samples metrics.recording.level metrics.sample.window.ms offsets.commit.required.acks
process.roles producer.purgatory.purge.interval.requests queued.max.requests
quota.window.num quota.window.size.seconds replica.selector.class replica.socket.receive.buffer.bytes
replication.quota.window.num replication.quota.window.size.seconds request.timeout.ms
reserved.broker.max.id
socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms telemetry.max.bytes
transaction.state.log.load.buffer.size transaction.two.phase.commit.enable
"""

WITHOUT_EFFECT = frozenset(_KEYS.split())

PREFIXES_WITHOUT_EFFECT = (
    "confluent.",
    "group.share.",
    "group.streams.",
    "remote.",
    "rlmm.config.",
    "rsm.config.",
    "share.",
)

HTTP_PREFIX = "millstream.http."
"""The prefix of the keys of the HTTP listener."""
SECURITY_PREFIXES = ("ssl.", "sasl.", "listener.name.")
"""Keys of TLS and SASL: `security_keys` checks them."""

REFUSED_PREFIXES = (
    *SECURITY_PREFIXES,
    "authorizer.",
    "delegation.token.",
    "super.users",
    "allow.everyone.if.no.acl.found",
    "alter.config.policy.",
    "control.plane.listener.",
    "create.topic.policy.",
    "principal.builder.",
    "security.providers",
)
"""Security settings that cannot be changed while the broker runs.

All but those of TLS and SASL are refused: a broker that ignored them would be open although its operator
believes it closed.
"""

HARMLESS = {
    "principal.builder.class": "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
}
"""Values of such settings that promise nothing."""


def is_refused(key: str, value: str) -> bool:
    """Return True if a setting promises a protection that this broker does not have."""
    return key.startswith(REFUSED_PREFIXES) and value.strip().lower() not in (
        "",
        HARMLESS.get(key, "").lower(),
    )


def has_no_effect(key: str) -> bool:
    """Return True if ``key`` is a Kafka key without effect in ``logd``."""
    return key in WITHOUT_EFFECT or key.startswith(PREFIXES_WITHOUT_EFFECT)
