"""The report of a connector's config: all errors of all its keys, in Kafka Connect's shape.

The keys are those of every connector, of the plugin, its converters, transforms and predicates, and of its
clients. The plugin's own `validate` comes last, if its declared settings are valid.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from connect.api.range_sink import RangeSinkTask
from connect.config import (
    REFUSED,
    Config,
    ConnectorConfig,
    SinkConfig,
    SourceConfig,
    refuse_unsupported,
    validate,
)
from connect.config.providers import hidden_report
from connect.converters import converter_class, make_converter, make_header_converter
from connect.errors import BadRequest, ConfigError, ConnectError, NotFound
from connect.runtime.batch_source_task import is_batch_source, refused_for_batches
from connect.runtime.client_settings import client_arguments, consumer_arguments, producer_arguments
from connect.runtime.clients import ROLES
from connect.runtime.consumer_group_check import consumer_group_errors
from connect.runtime.exactly_once_check import exactly_once_errors
from connect.runtime.override_policy import refused_overrides
from connect.runtime.plugins import (
    ConnectorClass,
    connector_class,
    connector_type,
    named_version,
    registered_names,
    reload_plugins,
)
from connect.runtime.topic_creation import creation_rules
from connect.runtime.worker_config import WorkerConfig
from connect.transforms import examine
from connect.transforms.declared import prefixed

OnStage: TypeAlias = Callable[[str], None]
_CONVERTERS = ("key.converter", "value.converter", "header.converter")


def report_config(
    worker: WorkerConfig, raw: Mapping[str, Any], on_stage: OnStage = lambda description: None
) -> dict[str, Any]:
    """Return the response of PUT /connector-plugins/{p}/config/validate. Blocks, as the plugin may.

    `on_stage` is called at the begin of each stage, with a description that is Kafka Connect's.
    Values of variables are looked up, and are not in the report. Raises BadRequest if `connector.class` names
    no connector, ConfigError if a variable's provider cannot be read.
    """
    on_stage("validating connector configuration")
    reload_plugins()
    on_stage("resolving transformed configuration properties for the connector")
    resolved = worker.providers.resolve(raw)
    return hidden_report(raw, resolved, _report(worker, resolved, on_stage))


def _report(worker: WorkerConfig, raw: Mapping[str, Any], on_stage: OnStage) -> dict[str, Any]:
    name = raw.get("connector.class")
    if not name:
        raise BadRequest("Connector config contains no connector type")
    on_stage("loading the connector's plugin")
    plugin = plugin_named(*named_version(raw))
    role = connector_type(plugin)
    on_stage("retrieving the configuration definition from the connector")
    declarations = _declarations(plugin, role, raw)
    own_settings_are_valid = not plugin.CONFIG.examine(raw)[1]
    on_stage(f"validating {role} connector-specific properties for the connector")
    errors = list(_shared_errors(worker, plugin, role, raw, on_stage))
    if own_settings_are_valid:
        on_stage("performing multi-property validation for the connector")
        errors.extend(_own_errors(plugin, raw))
    on_stage("validating connector configuration")
    return validate(str(name), declarations, raw, errors)


def plugin_named(name: str, *version: str) -> ConnectorClass:
    """Return the connector class. Raises BadRequest, with the names of all plugins, if there is none."""
    try:
        return connector_class(name, *version)
    except NotFound as e:
        raise BadRequest(
            f"Failed to find any class that implements Connector and which name matches {name}, available "
            f"connectors are: {', '.join(sorted(registered_names()))}"
        ) from e
    except ConnectError as e:
        raise BadRequest(f"Failed to load the connector {name}: {e}") from e


def _declarations(plugin: ConnectorClass, role: str, raw: Mapping[str, Any]) -> list[type[Config]]:
    common = SourceConfig if role == "source" else SinkConfig
    declarations: list[type[Config]] = [common, *examine(raw).configs()]
    for which in _CONVERTERS:
        name = raw.get(which)
        if name:
            try:
                version = raw.get(f"{which}.plugin.version")
                config = getattr(converter_class(which, str(name), version), "CONFIG", None)
            except ConfigError:
                continue  # the error is among those of the converters
            if config is not None:
                declarations.append(prefixed(f"{which}.", config, which))
    return [*declarations, plugin.CONFIG]


def _shared_errors(
    worker: WorkerConfig, plugin: ConnectorClass, role: str, raw: Mapping[str, Any], on_stage: OnStage
) -> Iterator[ConfigError]:
    """Yield the errors of unsupported keys, transforms, converters, clients and topics."""
    for key in REFUSED & raw.keys():
        yield from _error(lambda key=key: refuse_unsupported({key: raw[key]}))  # type: ignore[misc]
    yield from examine(raw).errors
    yield from exactly_once_errors(worker, plugin, raw)
    yield from consumer_group_errors(worker, role, raw)
    if is_batch_source(plugin):
        yield from refused_for_batches(raw)
    elif not issubclass(getattr(plugin, "task_class", object), RangeSinkTask):
        for which in _CONVERTERS:
            on_stage(f"instantiating the connector's {which.replace('.', ' ')} for validation")
            yield from _error(lambda which=which: _make_converter(worker, which, raw))  # type: ignore[misc]
    kind = ROLES[role]
    on_stage(f"validating {kind} config overrides for the connector")
    policy = worker.connector_client_config_override_policy
    refused = refused_overrides(policy, worker.connector_client_config_override_allowlist, raw)
    yield from refused
    if refused:
        return
    yield from _error(lambda: client_arguments(worker.raw, raw, kind))
    if role == "source":
        yield from _error(lambda: producer_arguments(worker.raw, raw))
        yield from _error(lambda: creation_rules(raw))
    else:
        yield from _error(lambda: consumer_arguments(worker.raw, raw))


def _make_converter(worker: WorkerConfig, which: str, raw: Mapping[str, Any]) -> None:
    name, settings = worker.converter_config(which, dict(raw))
    if which == "header.converter":
        make_header_converter(name, settings)
    else:
        make_converter(which, name, settings)


def _error(check: Callable[[], object]) -> Iterator[ConfigError]:
    try:
        check()
    except ConfigError as e:
        yield e


def _own_errors(plugin: ConnectorClass, raw: Mapping[str, Any]) -> Iterator[ConfigError]:
    """Yield what the plugin's `validate` finds. An error that it raises is one of `connector.class`."""
    config = {key: str.__str__(value) if isinstance(value, str) else str(value) for key, value in raw.items()}
    try:
        result: Any = plugin().validate(config)
        if inspect.isawaitable(result):
            result = asyncio.run(_result(result))
        problems = {str(key): [str(text) for text in texts] for key, texts in (result or {}).items()}
    except ConfigError as e:
        yield e
        return
    except Exception as e:
        yield ConfigError("connector.class", raw["connector.class"], f"its validate() failed: {e!r}")
        return
    for key, texts in problems.items():
        declared = plugin.CONFIG.settings().get(key)
        is_secret = declared is None or declared.kind == "PASSWORD"
        value = "[hidden]" if is_secret and key in raw else raw.get(key)
        yield from (ConfigError(key, value, text) for text in texts)


async def _result(awaitable: Any) -> Any:
    return await awaitable


def definitions_of(plugin: ConnectorClass) -> list[type[Config]]:
    """Return the declarations of a plugin's own keys and of those of every connector of its kind."""
    common: type[ConnectorConfig] = SourceConfig if connector_type(plugin) == "source" else SinkConfig
    return [plugin.CONFIG, common]
