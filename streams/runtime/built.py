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
    """What a topology is built with: `StreamsBuilder`."""

    def build(self, config: StreamsConfig | None = None) -> Topology:
        """The topology."""
        ...


def built_for(config: StreamsConfig, topology: Topology | Buildable) -> Topology:
    """The topology to be run; TopologyError for what is none, or has names that the settings refuse.

    What is built already stays as it is: rules that it was not built by are warned of.
    """
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
    return topology
