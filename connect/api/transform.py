"""Transforms and predicates: what `transforms` applies to each record (KIP-66, KIP-585).

transforms=route
transforms.route.type=my_module:Route        a Transform
transforms.route.suffix=-new                 its own setting
transforms.route.predicate=is_order          applied only to records for which the predicate is True
predicates=is_order
predicates.is_order.type=my_module:IsOrder   a Predicate
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeVar

from connect.api.records import SinkRecord, SourceRecord
from connect.config import Config

R = TypeVar("R", SourceRecord, SinkRecord)


class Transform:
    """A change of single records, before a sink's `put` or after a source's `poll`. Subclass it.

    One instance serves one task. Its calls come one at a time, from a thread of the task's own.
    """

    CONFIG: ClassVar[type[Config]] = Config
    """The typed declaration of the transform's settings."""
    VERSION: ClassVar[str] = "0"

    def configure(self, config: Mapping[str, str]) -> None:
        """Take the settings, without `transforms.<alias>.`. Raise ConfigError for an invalid one."""

    def apply(self, record: R) -> R | Sequence[R] | None:
        """Return the changed record, several records (KAFKA-3209), or None to leave the record out.

        Return a new record (`msgspec.structs.replace`) rather than change the given one: a failure's report
        shows the record as it was. Raise DataError for a record that cannot be changed.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Release what `configure` opened."""


class Predicate:
    """A test of single records, by which a transform is applied or not. Subclass it."""

    CONFIG: ClassVar[type[Config]] = Config
    """The typed declaration of the predicate's settings."""
    VERSION: ClassVar[str] = "0"

    def configure(self, config: Mapping[str, str]) -> None:
        """Take the settings, without `predicates.<alias>.`. Raise ConfigError for an invalid one."""

    def test(self, record: SourceRecord | SinkRecord) -> bool:
        """Return True if transforms with this predicate apply to the record."""
        raise NotImplementedError

    def close(self) -> None:
        """Release what `configure` opened."""
