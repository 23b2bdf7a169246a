"""Settings of a streams application, named as Kafka's: ``commit.interval.ms`` ↔ ``commit_interval_ms``."""

from __future__ import annotations

import dataclasses
import importlib
import logging
import os
import re
import tempfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from kafka_client import IsolationLevel
from kafka_client.errors import ConfigError
from kafka_client.http.address import check_address
from kafka_client.properties import CLIENT, OF_JAVA, nearest, one_client
from kafka_client.security.keys import SECURITY_KEYS, is_security_key
from streams.handlers import ExceptionHandler, log_and_continue, log_and_fail
from streams.optimization import NO_OPTIMIZATION, optimization_rules
from streams.timestamps import log_and_skip_on_invalid_timestamp, wallclock_timestamp

_log = logging.getLogger(__name__)

COMMIT_MS = 30_000
EXACTLY_ONCE_COMMIT_MS = 100
"""``commit.interval.ms`` unless given, by ``processing.guarantee``."""


def default_state_dir() -> str:
    """Return the default state directory, under the system's temporary folder as in Kafka Streams."""
    return os.path.join(tempfile.gettempdir(), "millstream-streams")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsConfig:
    """The settings of one instance of an application, besides its topology."""

    application_id: str
    """The group id, and the prefix of internal topics and of the folder under ``state_dir``."""
    bootstrap_servers: str
    """``host:port``, several divided by commas."""
    client_id: str = ""
    """The name of this instance in the brokers' logs; the application id when empty."""
    state_dir: str = field(default_factory=default_state_dir)
    """Folder for RocksDB stores; one process at a time works in one application's folder under it."""
    state_cleanup_delay_ms: int = 600_000
    """After this long the state of a task that went to another instance is deleted here."""
    processing_guarantee: Literal["at_least_once", "exactly_once_v2"] = "at_least_once"
    """``exactly_once_v2``: output, state and positions are committed in one transaction (KIP-447)."""
    commit_interval_ms: int | None = None
    """How often positions and state are committed; cached tables are forwarded at the same moments. Unless
    given, every 30 s, and with ``exactly_once_v2`` every 100 ms."""
    transaction_timeout_ms: int = 10_000
    """After this long the coordinator aborts a transaction; one that is open for half of it is committed."""
    emit_interval_ms_kstreams_windowed_aggregation: int = 1_000
    """How often windows that closed are looked for, where they are emitted then. Kafka's key has underscores
    around it: ``__emit.interval.ms.kstreams.windowed.aggregation__``."""
    statestore_cache_max_bytes: int = 64 * 1024 * 1024
    """About how much memory the stores' caches take, all tasks together; more forces an early commit."""
    rocksdb_block_cache_bytes: int = 128 * 1024 * 1024
    """How much memory blocks of RocksDB's files take, indexes and bloom filters included, all stores of this
    instance together. In Kafka Streams that takes a class, the ``rocksdb.config.setter``."""
    rocksdb_write_buffer_bytes: int = 64 * 1024 * 1024
    """How much memory RocksDB's write buffers take, all stores together, before they are written to files.
    What one commit changes in a store goes there at once, and may go beyond it."""
    auto_offset_reset: Literal["earliest", "latest", "none"] = "earliest"
    """Where an input begins without a committed position, or with a lost one, if its source has no reset."""
    isolation_level: IsolationLevel = "read_committed"
    """``read_committed`` leaves out records of aborted transactions, and waits for the end of open ones.
    Kafka Streams' default is ``read_uncommitted``, which counts aborted records too; reading committed ones
    costs nothing where nobody writes transactions. Changelogs are always read committed."""
    max_task_idle_ms: int = 0
    """How long a task waits for an input that is empty at the broker too; -1 waits for none (KIP-695)."""
    buffered_records_per_partition: int = 20_000
    """Above this many records waiting, a partition is not fetched further."""
    input_buffer_max_bytes: int = 512 * 1024 * 1024
    """About how much memory waiting records take, all inputs together, as fetched or decoded.

    Above it only empty inputs are fetched, and no task decodes more until others have processed what they
    hold decoded. An input decodes a batch at a time, whose size is the producer's to choose.
    """
    poll_ms: int = 100
    """How long to wait for data when there is none; also how long one slice of processing may take."""
    repartition_purge_interval_ms: int = 30_000
    """How often what is committed of repartition topics is deleted (KIP-811)."""
    replication_factor: int = -1
    """Replicas of internal topics; -1 is the broker's default."""
    max_request_size: int = 1_048_576
    """Largest record, and batch, sent; a task's changes to a store go out as one batch of up to 1 MB."""
    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    """Codec of everything produced."""
    session_timeout_ms: int = 45_000
    """After this long without a heartbeat the tasks go to other members."""
    heartbeat_interval_ms: int = 3_000
    """How often the group hears from this member."""
    max_poll_interval_ms: int = 300_000
    """How long a function of yours may take for a record before this member leaves the group, so that others
    take its tasks over; also how long a rebalance waits for this member to commit and give tasks up."""
    num_standby_replicas: int = 0
    """Copies of each task's state that other instances keep up to date, to take the task over at once."""
    acceptable_recovery_lag: int = 10_000
    """A task goes only to an instance whose state of it is no more offsets behind than this, if any is."""
    max_warmup_replicas: int = 2
    """Tasks whose state is brought to where they are to run at one time, while they run elsewhere."""
    probing_rebalance_interval_ms: int = 600_000
    """How often is looked whether state that is warmed up is near enough, besides when it says so itself."""
    metadata_max_age_ms: int = 300_000
    """How often the inputs are looked at for new partitions."""
    group_instance_id: str | None = None
    """Static membership: a restart under the same name gets its tasks back without a rebalance."""
    application_server: str = ""
    """``host:port`` at which other instances, and clients, reach this one's queries; told to the group. With
    ``http_listener`` it is where that listens, unless given."""
    http_listener: str = ""
    """``host:port`` on which the application's HTTP view is served: state, metrics and queries, without
    authentication. Port 0 takes any that is free; nothing is served unless given."""
    deserialization_exception_handler: ExceptionHandler = log_and_fail
    """The handler of a record whose bytes do not fit its serde."""
    production_exception_handler: ExceptionHandler = log_and_fail
    """The handler of a record that cannot be serialized or is refused by the broker."""
    processing_exception_handler: ExceptionHandler = log_and_fail
    """The handler of a record over which a node's function raises. Any but ``log_and_fail`` costs a call per
    node and record."""
    errors_dead_letter_queue_topic_name: str | None = None
    """Where the built-in handlers that go on write the input records they leave out (KIP-1034)."""
    emit_interval_ms_kstreams_outer_join_spurious_results_fix: int = 1000
    """How often, by wall clock, left and outer joins of streams look for records that met nothing until their
    windows were over. The key is Kafka's, with two underscores before and behind it."""
    topology_optimization: str = NO_OPTIMIZATION
    """``none``, ``all``, or of ``reuse.ktable.source.topics``, ``merge.repartition.topics`` and
    ``single.store.self.join`` some, divided by commas. `StreamsBuilder.build` takes it from here."""
    default_key_serde: Any = None
    """A serde, or a type that names one, of keys where the program names none: `StreamsBuilder` takes it
    from here. In a file the class of Kafka's, or ``module:name``."""
    default_value_serde: Any = None
    """The same of values."""
    default_timestamp_extractor: Callable[[Any, Any, int], int] | None = None
    """Gives the time (ms) of inputs' records of key, value and the record's own, where a source has none."""
    default_dsl_store: Literal["rocksDB", "in_memory"] = "rocksDB"
    """Where stores are kept that the program does not say it of; versioned ones are kept in RocksDB."""
    dsl_store_suppliers_class: str = ""
    """The same by the class of Kafka's (KIP-954), which counts if both are given."""
    ensure_explicit_internal_resource_naming: bool = False
    """True if stores and internal topics that nobody gave a name are refused (KIP-1111)."""
    client: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the application's `Client`: `security`, backoffs. Not a key: `from_properties`
    gathers it from `security.protocol`, `ssl.*`, `sasl.*` and the other keys of Kafka's clients."""

    def __post_init__(self) -> None:
        self.validate()

    @property
    def exactly_once(self) -> bool:
        """True if the application writes transactions."""
        return self.processing_guarantee == "exactly_once_v2"

    @property
    def topology_defaults(self) -> dict[str, Any]:
        """The keyword arguments for `Topology.with_defaults`."""
        in_memory = self.default_dsl_store == "in_memory"
        if self.dsl_store_suppliers_class:
            in_memory = self.dsl_store_suppliers_class == IN_MEMORY_SUPPLIERS
        return {"timestamp_extractor": self.default_timestamp_extractor, "in_memory": in_memory}

    @property
    def commit_every_ms(self) -> int:
        """`commit_interval_ms`, or its default."""
        if self.commit_interval_ms is not None:
            return self.commit_interval_ms
        return EXACTLY_ONCE_COMMIT_MS if self.exactly_once else COMMIT_MS

    @property
    def revoke_timeout_ms(self) -> int:
        """How long a revocation may take to commit, ms.

        After that, the group or the transaction coordinator has removed this instance.
        """
        if self.exactly_once:
            return min(self.max_poll_interval_ms, self.transaction_timeout_ms)
        return self.max_poll_interval_ms

    def validate(self) -> None:
        """Raise ConfigError for the first value that is not allowed."""
        # The application id begins the names of topics and of a folder.
        id = self.application_id
        if not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", id) or id in (".", ".."):
            raise ConfigError(
                "application.id", id, "up to 249 letters, digits, '.', '_' and '-', not . or .."
            )
        if not self.bootstrap_servers:
            raise ConfigError("bootstrap.servers", self.bootstrap_servers, "host:port[,host:port]")
        for name, hint in get_type_hints(type(self)).items():
            self._check(name, hint)
        optimization_rules(self.topology_optimization)
        if self.dsl_store_suppliers_class not in ("", ROCKSDB_SUPPLIERS, IN_MEMORY_SUPPLIERS):
            raise ConfigError(
                "dsl.store.suppliers.class",
                self.dsl_store_suppliers_class,
                f"{ROCKSDB_SUPPLIERS} or {IN_MEMORY_SUPPLIERS}; Materialized(persistent=) is for one store",
            )
        if self.exactly_once and self.isolation_level != "read_committed":
            raise ConfigError(
                "isolation.level", self.isolation_level, "read_committed, which exactly_once_v2 needs"
            )

        for key, value in (
            ("application.server", self.application_server),
            ("http.listener", self.http_listener),
        ):
            if value:
                check_address(key, value)
        if self.http_listener.startswith(("0.0.0.0:", "[::]:")) and not self.application_server:
            raise ConfigError(
                "http.listener", self.http_listener, "with application.server, which others reach it by"
            )

    def _check(self, name: str, hint: Any) -> None:
        value, key = getattr(self, name), name.replace("_", ".")
        least = _LEAST.get(name, 1)
        if hint == int | None and value is not None:
            hint = int
        if hint is int and not isinstance(value, int):
            raise ConfigError(key, value, "a whole number")
        if hint is int and value < least:
            raise ConfigError(key, value, f"{least} or more")
        if get_origin(hint) is Literal and value not in get_args(hint):
            raise ConfigError(key, value, "one of " + ", ".join(get_args(hint)))
        if hint == ExceptionHandler and not callable(value):
            raise ConfigError(key, value, "a function, such as streams.log_and_continue")
        if name == "default_timestamp_extractor" and not (value is None or callable(value)):
            raise ConfigError(key, value, "a function, such as streams.wallclock_timestamp")

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any], *, foreign: Collection[str] = ()) -> Self:
        """Read Kafka's dotted keys; text is converted to each setting's type.

        Raises ConfigError for unknown keys, except ``foreign`` ones, from a file that other programs read
        too. Those, and keys of Kafka's Java library without effect here, are named in one line of the log.
        """
        hints = get_type_hints(cls)
        values: dict[str, Any] = {"client": one_client(properties, ("",), _ROLES).client()}
        for key in ("client_id", "metadata_max_age_ms"):
            values["client"].pop(key, None)  # settings of the application itself
        properties = _without_clients_and_javas(_renamed(properties), foreign)
        key_of: dict[str, str] = {}
        for key, value in sorted(properties.items(), key=lambda item: _PREFIXES.index(_prefix(item[0]))):
            name = _without_prefix(key).strip("_").replace(".", "_").replace("-", "_")
            if name not in _NAMES_OF_KEYS:
                raise _unknown(key, value)
            values[name] = _converted(key, value, hints[name])
            key_of[name.replace("_", ".")] = key
        try:
            return cls(**values)
        except ConfigError as error:
            raise ConfigError(key_of.get(error.key, error.key), error.value, error.allowed) from None


def _unknown(key: str, value: Any) -> ConfigError:
    """Return the error for an unknown key; its text names the nearest known one."""
    near = _nearest(key, cutoff=0.6)
    meant = f"did you mean {near}?" if near else "docs/streams/settings.md lists the settings"
    return ConfigError(key, value, f"not one of the settings; {meant}")


def _nearest(key: str, *, cutoff: float) -> str | None:
    """Return the known key, with the same prefix, that `key` may be a misspelling of, or None."""
    role = next((each for each in _ROLES if key.startswith(each)), "")
    keys = {name.strip("_").replace("_", ".") for name in _NAMES_OF_KEYS} | set(CLIENT) | _OF_KAFKA_STREAMS
    inner = key.removeprefix(role).replace("_", ".")
    near = nearest(inner, sorted(keys | SECURITY_KEYS), cutoff=cutoff)
    return near and role + near


_NAMES_OF_KEYS = frozenset(each.name for each in dataclasses.fields(StreamsConfig)) - {"client"}

_ROLES = ("admin.", "producer.", "consumer.", "main.consumer.", "restore.consumer.", "global.consumer.")
"""Prefixes of the settings of Kafka Streams' several clients."""

_IDLE = """
    built.in.metrics.version
    default.client.supplier default.list.key.serde.inner
    default.list.key.serde.type default.list.value.serde.inner default.list.value.serde.type
    log.summary.interval.ms num.stream.threads
    processor.wrapper.class rack.aware.assignment.non_overlap_cost rack.aware.assignment.strategy
    rack.aware.assignment.tags rack.aware.assignment.traffic_cost rocksdb.config.setter
    task.assignor.class task.timeout.ms upgrade.from window.size.ms
    windowed.inner.class.serde windowstore.changelog.additional.retention.ms
"""
_OF_KAFKA_STREAMS = frozenset(_IDLE.split())
"""Keys of Kafka Streams without effect here."""


_FORMER = {
    "default.deserialization.exception.handler": "deserialization.exception.handler",
    "default.production.exception.handler": "production.exception.handler",
    "cache.max.bytes.buffering": "statestore.cache.max.bytes",
}
"""Former names of keys in Kafka Streams, with the current ones, which take precedence."""


def _renamed(properties: Mapping[str, Any]) -> dict[str, Any]:
    former = {now: properties[name] for name, now in _FORMER.items() if name in properties}
    return former | {key: value for key, value in properties.items() if key not in _FORMER}


def _without_clients_and_javas(properties: Mapping[str, Any], foreign: Collection[str]) -> dict[str, Any]:
    """Return the settings of the application itself."""
    own: dict[str, Any] = {}
    idle = []
    for key, value in properties.items():
        inner = key[len(next((role for role in _ROLES if key.startswith(role)), "")) :]
        if is_security_key(inner) or (inner in CLIENT and inner.replace(".", "_") not in _NAMES_OF_KEYS):
            continue
        is_setting = _without_prefix(key).replace(".", "_").replace("-", "_") in _NAMES_OF_KEYS
        if not is_setting and (inner in OF_JAVA or key in _OF_KAFKA_STREAMS):
            idle.append(key)
        elif not is_setting and key in foreign:
            near = _nearest(key, cutoff=0.8)
            idle.append(f"{key} (did you mean {near}?)" if near else key)
        else:
            own[key] = value
    if idle:
        _log.warning("without effect here: %s", ", ".join(sorted(idle)))
    return own


_PREFIXES = ("", "producer.", "consumer.", "main.consumer.")
"""Prefixes of the settings of Kafka Streams' clients; a later one overrides those before it."""


def _prefix(key: str) -> str:
    """Return the prefix of a client's setting's key, "" for any other key."""
    prefix = next((each for each in reversed(_PREFIXES) if key.startswith(each)), "")
    own = PRODUCER_KEYS if prefix == "producer." else CONSUMER_KEYS
    return prefix if key.removeprefix(prefix) in own else ""


def _without_prefix(key: str) -> str:
    return key.removeprefix(_prefix(key))


CONSUMER_KEYS = frozenset(
    (
        "auto.offset.reset",
        "group.instance.id",
        "heartbeat.interval.ms",
        "isolation.level",
        "max.poll.interval.ms",
        "session.timeout.ms",
    )
)
"""Settings of the consumer, which may be given as ``consumer.…`` too."""

PRODUCER_KEYS = frozenset(("compression.type", "max.request.size", "transaction.timeout.ms"))
"""Settings of the producer, which may be given as ``producer.…`` too."""

_LEAST = {
    "num_standby_replicas": 0,
    "acceptable_recovery_lag": 0,
    "commit_interval_ms": 0,
    "emit_interval_ms_kstreams_windowed_aggregation": 0,
    "emit_interval_ms_kstreams_outer_join_spurious_results_fix": 0,
    "statestore_cache_max_bytes": 0,
    "max_task_idle_ms": -1,
    "replication_factor": -1,
    "repartition_purge_interval_ms": 0,
    "rocksdb_block_cache_bytes": 1 << 20,
    "rocksdb_write_buffer_bytes": 1 << 20,
}
"""The smallest allowed value of numbers whose minimum is not 1."""

HANDLERS: Mapping[str, ExceptionHandler] = {
    "fail": log_and_fail,
    "continue": log_and_continue,
    "log_and_fail": log_and_fail,
    "log_and_continue": log_and_continue,
    "org.apache.kafka.streams.errors.LogAndFailExceptionHandler": log_and_fail,
    "org.apache.kafka.streams.errors.LogAndContinueExceptionHandler": log_and_continue,
    "org.apache.kafka.streams.errors.LogAndFailProcessingExceptionHandler": log_and_fail,
    "org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler": log_and_continue,
    "org.apache.kafka.streams.errors.DefaultProductionExceptionHandler": log_and_fail,
}
"""Exception handlers by their names in a properties file."""


SERDES: Mapping[str, str] = {
    f"org.apache.kafka.common.serialization.Serdes${java}Serde": f"streams.serdes:{ours}"
    for java, ours in (
        ("Boolean", "Boolean"),
        ("ByteArray", "Bytes"),
        ("ByteBuffer", "Bytes"),
        ("Bytes", "Bytes"),
        ("Double", "Double"),
        ("Float", "Float"),
        ("Integer", "Integer"),
        ("Long", "Long"),
        ("Short", "Short"),
        ("String", "String"),
        ("UUID", "Uuid"),
    )
}
"""Kafka's serdes by the names of their classes, as ``module:name``."""

_PROCESSOR = "org.apache.kafka.streams.processor."
EXTRACTORS: Mapping[str, Callable[[Any, Any, int], int] | None] = {
    f"{_PROCESSOR}FailOnInvalidTimestamp": None,
    f"{_PROCESSOR}LogAndSkipOnInvalidTimestamp": log_and_skip_on_invalid_timestamp,
    f"{_PROCESSOR}WallclockTimestampExtractor": wallclock_timestamp,
}
"""Kafka's timestamp extractors by the names of their classes; None: no extractor."""

_SUPPLIERS = "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$"
ROCKSDB_SUPPLIERS = f"{_SUPPLIERS}RocksDBDslStoreSuppliers"
IN_MEMORY_SUPPLIERS = f"{_SUPPLIERS}InMemoryDslStoreSuppliers"


def _converted(key: str, value: Any, hint: Any) -> Any:
    if isinstance(value, str) and key in ("default.key.serde", "default.value.serde"):
        return _named_serde(key, value)
    if isinstance(value, str) and key == "default.timestamp.extractor":
        return EXTRACTORS[value] if value in EXTRACTORS else _named(key, value, EXTRACTORS)
    if hint in (int, int | None):
        try:
            return int(value)
        except ValueError:
            raise ConfigError(key, value, "a whole number") from None
    if hint is bool and isinstance(value, str):
        if value.lower() not in ("true", "false"):
            raise ConfigError(key, value, "true or false")
        return value.lower() == "true"
    if hint == ExceptionHandler and isinstance(value, str):
        return HANDLERS[value] if value in HANDLERS else _named(key, value, HANDLERS)
    return value


def _named_serde(key: str, name: str) -> Any:
    """Return the serde named by Kafka's class name or ``module:name``; a serde class is instantiated."""
    named = _named(key, SERDES.get(name, name), SERDES, "module:name of a serde or type")
    serde = importlib.import_module("streams.serdes").Serde
    if not (isinstance(named, type) and issubclass(named, serde)):
        return named
    try:
        return named()
    except TypeError as error:
        raise ConfigError(key, name, "a serde itself, module:name, as its class takes arguments") from error


def _named(key: str, name: str, aliases: Collection[str], form: str = "module:function") -> Any:
    """Import and return the object at ``module:name``; ``aliases`` are only for the error's text."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        allowed = f"{form}, or one of " + ", ".join(aliases)
        raise ConfigError(key, name, allowed) from error
