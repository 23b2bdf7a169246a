"""The check of a connector's config: what would fail in each of its tasks, and keys without effect."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connect.api.range_sink import RangeSinkTask
from connect.config import (
    REFUSED,
    Config,
    ConnectorConfig,
    SinkConfig,
    SourceConfig,
    refuse_unsupported,
    unknown_keys,
)
from connect.config.providers import hidden
from connect.converters import unknown_settings
from connect.errors import ConfigError, InvalidConfig
from connect.runtime.batch_source_task import is_batch_source, refused_for_batches
from connect.runtime.client_settings import (
    Role,
    client_arguments,
    cluster_of,
    consumer_arguments,
    producer_arguments,
    put_records_max,
)
from connect.runtime.clients import ROLES
from connect.runtime.consumer_group_check import consumer_group_errors
from connect.runtime.conversion import Conversion
from connect.runtime.exactly_once_check import exactly_once_errors
from connect.runtime.override_policy import refused_overrides
from connect.runtime.plugins import ConnectorClass, connector_class, connector_type, named_version
from connect.runtime.topic_creation import creation_prefixes, creation_rules
from connect.runtime.worker_config import WorkerConfig
from connect.transforms import TransformChain, examine

_log = logging.getLogger(__name__)
_CONVERTERS = ("key.converter.", "value.converter.", "header.converter.")
_CLIENTS = ("admin.", "consumer.", "producer.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedConfig:
    """A connector's config that has passed the check, and what it says about every connector."""

    name: str
    plugin: ConnectorClass
    type: str
    """`source` or `sink`."""
    tasks_max: int
    config: Mapping[str, str]
    """The whole config as texts, with its variables (`connect.config.providers`)."""


def check_config(worker: WorkerConfig, raw: Mapping[str, Any]) -> CheckedConfig:
    """Check a connector's config; log the keys in it that have no effect.

    Raises ConfigError or NotFound if it is not valid. Neither holds a value of a variable.
    """
    resolved = worker.providers.resolve(raw)
    try:
        return _check(worker, resolved, {key: _text(value) for key, value in raw.items()})
    except ConfigError as e:
        error = hidden(raw, resolved, e)
    raise error  # outside, so that the error with the value is no context of this one


def _check(worker: WorkerConfig, raw: Mapping[str, Any], texts: Mapping[str, str]) -> CheckedConfig:
    common = ConnectorConfig.parse(raw)
    plugin = connector_class(*named_version(raw))
    role = connector_type(plugin)
    transforms = examine(raw)
    declarations: list[type[Config]] = [
        SourceConfig if role == "source" else SinkConfig,
        *transforms.configs(),
        plugin.CONFIG,
    ]
    invalid = [*transforms.errors, *(e for each in declarations for e in each.examine(raw)[1])]
    if errors := list({str(e): e for e in invalid}.values()):
        raise InvalidConfig(errors) if len(errors) > 1 else errors[0]
    refuse_unsupported(raw)
    refused = refused_overrides(
        worker.connector_client_config_override_policy, worker.connector_client_config_override_allowlist, raw
    )
    if refused:
        raise InvalidConfig(refused)
    unable = [*exactly_once_errors(worker, plugin, raw), *consumer_group_errors(worker, role, raw)]
    if unable:
        raise InvalidConfig(unable) if len(unable) > 1 else unable[0]
    checked = CheckedConfig(
        name=common.name,
        plugin=plugin,
        type=role,
        tasks_max=common.tasks_max,
        config=texts,
    )
    _check_shared(checked, worker, raw)
    _warn_unused(checked, declarations, raw)
    return checked


def _check_shared(checked: CheckedConfig, worker: WorkerConfig, raw: Mapping[str, Any]) -> None:
    """Raise ConfigError for settings of converters, clients and topics that would fail in every task."""
    if is_batch_source(checked.plugin):
        if errors := refused_for_batches(raw):
            raise InvalidConfig(errors) if len(errors) > 1 else errors[0]
    elif not issubclass(getattr(checked.plugin, "task_class", object), RangeSinkTask):
        Conversion.configured(worker, raw)
        TransformChain.configured(raw).close()
        _warn_converters(checked.name, worker, raw)
    roles: tuple[Role, Role] = (ROLES[checked.type], "admin")
    for each in roles:
        client_arguments(worker.raw, raw, each)
        cluster_of(worker.raw, raw, each, worker.bootstrap_servers)
    if checked.type == "source":
        producer_arguments(worker.raw, raw)
        creation_rules(raw)
    else:
        consumer_arguments(worker.raw, raw)
        put_records_max(worker.raw, raw)
        if raw.get("errors.deadletterqueue.topic.name"):
            producer_arguments(worker.raw, raw)


def _warn_unused(
    checked: CheckedConfig, declarations: Sequence[type[Config]], raw: Mapping[str, Any]
) -> None:
    """Log keys without effect: Kafka's in one line, each unknown key with the most similar valid one."""
    name, role = checked.name, checked.type
    of_others = [*_CONVERTERS, *_overrides(role, raw), *checked.plugin.CONFIG.PREFIXES]
    if role == "source":
        of_others += creation_prefixes(raw)
    unused, unknown = [], []
    for key, nearest in unknown_keys(declarations, raw, of_others, sorted(REFUSED)).items():
        if key.startswith(_CLIENTS):
            unused.append(key)
        else:
            unknown.append(f"{key} ({nearest}?)" if nearest else key)
    if unknown:
        _log.warning("%s: not known, and without effect: %s", name, ", ".join(unknown))
    if unused:
        _log.warning("%s: without effect here: %s", name, ", ".join(sorted(unused)))


def _overrides(role: str, raw: Mapping[str, Any]) -> list[str]:
    """Return the prefixes of client settings; a sink has a producer only for its dead letters."""
    roles: set[Role] = {ROLES[role], "admin"}
    if raw.get("errors.deadletterqueue.topic.name"):
        roles.add("producer")
    return [f"{each}.override." for each in sorted(roles)]


def _warn_converters(name: str, worker: WorkerConfig, raw: Mapping[str, Any]) -> None:
    for which in ("key.converter", "value.converter", "header.converter"):
        prefix = which + "."
        if not raw.get(which):
            for key in (key for key in raw if key.startswith(prefix)):
                _log.warning("%s: %s has no effect: it goes with a %s here", name, key, which)
        for key, nearest in unknown_settings(which, *worker.converter_config(which, dict(raw))).items():
            hint = f"; {prefix}{nearest}?" if nearest else ""
            _log.warning("%s: %s%s is not known%s", name, prefix, key, hint)


def _text(value: object) -> str:
    """Return a config value as the text connectors get; JSON configs may have numbers and lists."""
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
