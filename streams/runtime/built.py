"""The topology that an application runs: built already, or by a builder with the application's settings."""

from __future__ import annotations

import logging
from typing import Protocol, runtime_checkable

from streams.config import StreamsConfig
from streams.errors import TopologyError
from streams.optimization import TOPOLOGY_OPTIMIZATION, optimization_rules
from streams.topology import Topology

log = logging.getLogger(__name__)


@runtime_checkable
class Buildable(Protocol):
    """A builder of topologies, such as `StreamsBuilder`."""

    def build(self, config: StreamsConfig | None = None) -> Topology:
        """Return the topology."""
        ...


def built_for(config: StreamsConfig, topology: Topology | Buildable) -> Topology:
    """Return the topology to run, building it if necessary.

    A topology that is already built gets the settings' timestamp extractor and kind of stores where it has
    none of its own. Logs a warning for optimization rules and default serdes that come too late. Raises
    TopologyError if ``topology`` is neither a topology nor a builder, or if the settings refuse its names.
    """
    built = _built(config, topology)
    keys = [key for key, serde in _default_serdes(config).items() if serde is not None]
    if keys and not built.has_default_serdes:
        log.warning(
            "%s: without effect on a topology whose serdes are known already: begin it with "
            "StreamsBuilder(config)",
            ", ".join(keys),
        )
    return built


def _default_serdes(config: StreamsConfig) -> dict[str, object]:
    return {
        "default.key.serde": config.default_key_serde,
        "default.value.serde": config.default_value_serde,
    }


def _built(config: StreamsConfig, topology: Topology | Buildable) -> Topology:
    if not isinstance(topology, Topology):
        if not isinstance(topology, Buildable):
            raise TopologyError(
                f"what runs is a Topology, of build(), or a StreamsBuilder, not a {type(topology).__name__}"
            )
        return topology.build(config)
    if optimization_rules(config.topology_optimization) - topology.optimization:
        log.warning(
            "%s=%s has no effect on a topology that is built already: give the StreamsBuilder itself, "
            "or build(config)",
            TOPOLOGY_OPTIMIZATION,
            config.topology_optimization,
        )
    if config.ensure_explicit_internal_resource_naming:
        topology.generated_names.refuse()
    return topology.with_defaults(**config.topology_defaults)
