"""Stores and internal topics with generated names, which change with the topology (KIP-1111)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from streams.errors import TopologyError
from streams.state import StoreSpec

SETTING = "ensure.explicit.internal.resource.naming"


@dataclass(frozen=True, slots=True)
class GeneratedNames:
    """The names with generated numbers, in the topology's order."""

    changelogs: tuple[str, ...]
    stores: tuple[str, ...]
    repartition_topics: tuple[str, ...]

    @classmethod
    def of(
        cls, stores: Iterable[StoreSpec], topics: Iterable[str], numbered: Collection[str]
    ) -> GeneratedNames:
        """Select the generated names: those that contain a name of ``numbered`` nodes and stores."""

        def is_numbered(name: str) -> bool:
            return any(each in name for each in numbered)

        generated = [spec for spec in stores if is_numbered(spec.name)]
        return cls(
            tuple(spec.changelog for spec in generated if spec.logged),
            tuple(spec.name for spec in generated),
            tuple(topic for topic in topics if is_numbered(topic)),
        )

    def refuse(self) -> None:
        """Raise TopologyError if there are any generated names."""
        kinds = {
            "changelog topics": self.changelogs,
            "state stores": self.stores,
            "repartition topics": self.repartition_topics,
        }
        listed = [f"{kind} {', '.join(names)}" for kind, names in kinds.items() if names]
        if listed:
            raise TopologyError(
                f"{SETTING} is on, and these have names that change with the topology: {'; '.join(listed)}. "
                "Name the stores by store= and the topics by name=, at the operators whose numbers they have"
            )
