"""The common part of transforms that change a record's key or value, with or without schema.

A transform says how it changes a value without schema (`plain`), and makes a plan for each schema
(`planned`): the changed schema, and a function that changes values. The latest plans are cached.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from connect.api.schema import Schema
from connect.api.transform import R, Transform
from connect.config import Config

_CACHED_PLANS = 16
C = TypeVar("C", bound=Config)
copied: Any = methodcaller("__copy__")
"""Returns a copy of a record: a quarter of the time of msgspec.structs.replace."""


Edit = Callable[[list[dict[str, Any]], Sequence[Any]], None]
"""Changes dicts in place, as a plan's `change` would; called with the dicts and copies of their records.

It may raise any error: the chain then takes the records one by one, to find the record and its error.
"""


class Plan(NamedTuple):
    """The change of values of one schema."""

    source: Schema
    """The schema of the values as they arrive; the plan keeps the object alive while its id is a key."""
    schema: Schema | None
    """The schema of the changed values."""
    change: Callable[[Any, Any], Any]
    """Called with the value and a copy of its record, whose other parts it may change; returns the changed
    value. May raise DataError."""
    edit: Edit | None = None
    """Changes many values at once; None if calls of `change` are as quick."""


class Configured(Transform, ABC, Generic[C]):
    """A transform with its parsed settings in `config`, which can change a record in place.

    A chain copies a record once for all transforms of this class in a row.
    """

    config: C

    def configure(self, config: Any) -> None:
        """Parse the settings, and call `prepare`. Raises ConfigError for an invalid one."""
        self.config = self.CONFIG.parse(config)  # type: ignore[assignment]
        self.prepare()

    def prepare(self) -> None:
        """Override it to compute from `config` what is the same for all records."""

    @abstractmethod
    def change(self, record: R) -> R | None:
        """Change the record, not its key, value or headers in place, and return it; None leaves it out."""

    def change_many(self, records: list[R]) -> list[R]:
        """Return what `change` returns for each of the records; those that it leaves out are missing."""
        change = self.change
        return [changed for record in records if (changed := change(record)) is not None]

    def apply(self, record: R) -> R | None:
        """Return a changed copy of the record, or None to leave it out."""
        return self.change(copied(record))


class PartTransform(Configured[C]):
    """A transform of keys or values; OnKey or OnValue, as a further base class, says which."""

    passes_null: ClassVar[bool] = True
    """True if a record whose part is null stays as it is."""

    def __init__(self) -> None:
        self._plans: dict[int, Plan] = {}

    @abstractmethod
    def plain(self, value: Any, record: Any) -> Any:
        """Return the changed value of a part without schema; `record` is a copy, which may be changed."""

    def plain_edit(self) -> Edit | None:
        """Return the edit of maps without schema; None if `plain` has to be called for each."""
        return None

    @abstractmethod
    def planned(self, schema: Schema) -> Plan:
        """Return the plan for the values of a schema."""

    def plan_of(self, schema: Schema) -> Plan:
        """Return the plan of a schema, from the cache if it is there."""
        return self._plans.get(id(schema)) or self.plan(schema)

    def plan(self, schema: Schema) -> Plan:
        """Make the plan of a schema that has none yet, and put it into the cache in place of the oldest."""
        made = self.planned(schema)
        if len(self._plans) >= _CACHED_PLANS:
            del self._plans[next(iter(self._plans))]
        self._plans[id(schema)] = made
        return made


class OnKey(PartTransform[C]):
    """A transform of keys."""

    def change(self, record: R) -> R:
        """Change the key of the record, and return the record."""
        value, schema = record.key, record.key_schema
        if value is None and self.passes_null:
            return record
        if schema is None:
            record.key = self.plain(value, record)
        else:
            plan = self._plans.get(id(schema)) or self.plan(schema)
            record.key = plan.change(value, record)
            record.key_schema = plan.schema
        return record


class OnValue(PartTransform[C]):
    """A transform of values."""

    def change(self, record: R) -> R:
        """Change the value of the record, and return the record."""
        value, schema = record.value, record.value_schema
        if value is None and self.passes_null:
            return record
        if schema is None:
            record.value = self.plain(value, record)
        else:
            plan = self._plans.get(id(schema)) or self.plan(schema)
            record.value = plan.change(value, record)
            record.value_schema = plan.schema
        return record
