"""`rest_parts`: what the REST interface needs of the runtime, for a worker and its service."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from connect.config import definitions
from connect.config.rest import RestConfig
from connect.converters import HeaderConverter, converter_class, converter_names
from connect.errors import ConfigError, ConnectError, NotFound
from connect.rest.parts import RestParts
from connect.rest.service import Document, WorkerService
from connect.runtime import WorkerConfig, connector_class, list_plugins
from connect.runtime.blocking_calls import BlockingCalls
from connect.runtime.config_report import definitions_of, report_config
from connect.runtime.stage import request_stage
from connect.transforms import PREDICATES, TRANSFORMS, predicate_class, transform_class
from kafka_client.metrics.metrics import Metrics

VALIDATIONS_MAX = 16
"""Bound of the checks of configs that have not returned; further ones wait, within their timeout."""
LOADS_MAX = 4
"""The same for lists of plugins and of their settings."""
_TRANSFORMS = "org.apache.kafka.connect.transforms."


def rest_parts(
    service: WorkerService, worker: WorkerConfig, config: RestConfig, registry: Metrics | None = None
) -> RestParts:
    """Return the parts of a worker's REST interface."""
    validations = BlockingCalls("connector validation", threads_max=VALIDATIONS_MAX)
    loading = BlockingCalls("loading of plugins", threads_max=LOADS_MAX)

    async def validate(raw: Mapping[str, str]) -> Document:
        stage = request_stage()
        stage.enter("waiting for a new thread to become available for connector validation")
        return await validations.call(report_config, worker, raw, stage.enter)

    return RestParts(
        service=service,
        validate=validate,
        plugins=partial(loading.call, plugins),
        plugin_config=partial(loading.call, plugin_config),
        config=config,
        registry=registry,
    )


def plugins(only_connectors: bool) -> list[dict[str, str]]:
    """Return the response of GET /connector-plugins. A connector that cannot be loaded is left out."""
    listed = [plugin for plugin in list_plugins() if "type" in plugin]
    for plugin in listed:
        if plugin["location"] == "installed":
            del plugin["location"]  # Kafka's answer has no such key
    if only_connectors:
        return listed
    named = [
        *((f"{_TRANSFORMS}{name}", "transformation") for name in TRANSFORMS),
        *((f"{_TRANSFORMS}predicates.{name}", "predicate") for name in PREDICATES),
        *((name, _converter_type(name)) for name in converter_names() if "." in name),
    ]
    return [*listed, *({"class": name, "type": kind, "version": "0"} for name, kind in named)]


def _converter_type(name: str) -> str:
    is_header = issubclass(converter_class("header.converter", name), HeaderConverter)
    return "header_converter" if is_header else "converter"


def plugin_config(name: str) -> list[dict[str, Any]]:
    """Return the response of GET /connector-plugins/{plugin}/config. Raises NotFound."""
    for find in (transform_class, predicate_class, converter_class):
        try:
            declaration = find("plugin", name).CONFIG
        except (ConfigError, AttributeError):
            continue
        return definitions([declaration])
    try:
        return definitions(definitions_of(connector_class(name)))
    except ConnectError as e:
        raise NotFound(f"Unknown plugin {name}.") from e
