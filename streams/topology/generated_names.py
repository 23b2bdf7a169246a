"""Stores and internal topics named by numbers, which are others when the topology changes (KIP-1111)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from streams.errors import TopologyError
from streams.state import StoreSpec

SETTING = "ensure.explicit.internal.resource.naming"


@dataclass(frozen=True, slots=True)
class GeneratedNames:
    """What has such a name, in the topology's order."""

    changelogs: tuple[str, ...]
    stores: tuple[str, ...]
    repartition_topics: tuple[str, ...]

    @classmethod
    def of(
        cls, stores: Iterable[StoreSpec], topics: Iterable[str], numbered: Collection[str]
    ) -> GeneratedNames:
        """``numbered``: the names that a number was taken for; what has one in its name has it from there."""

        def is_numbered(name: str) -> bool:
            return any(each in name for each in numbered)

        found = [spec for spec in stores if is_numbered(spec.name)]
        return cls(
            tuple(spec.changelog for spec in found if spec.logged),
            tuple(spec.name for spec in found),
            tuple(topic for topic in topics if is_numbered(topic)),
        )

    def refuse(self) -> None:
        """TopologyError if there is one."""
        kinds = {
            "changelog topics": self.changelogs,
            "state stores": self.stores,
            "repartition topics": self.repartition_topics,
        }
        told = [f"{kind} {', '.join(names)}" for kind, names in kinds.items() if names]
        if told:
            raise TopologyError(
                f"{SETTING} is on, and these have names that change with the topology: {'; '.join(told)}. "
                "Name the stores by store= and the topics by name=, at the operators whose numbers they have"
            )
