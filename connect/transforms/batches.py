"""The way of whole batches through transforms of ours: loops over fields in place of calls for each record.

Keys or values are copied once for all transforms in a row that change the same part. An error of any kind
ends the batch: the chain then takes its records one by one, so nothing here says which record has failed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from connect.api.schema import Schema
from connect.transforms.parts import Configured, Edit, OnKey, OnValue, PartTransform, copied

_CACHED_SCHEMAS = 16
Many = Callable[[list[Any]], list[Any]]
"""Changes copies of records in place, and returns those that are not left out."""


class Batches:
    """The steps of a chain for whole batches."""

    def __init__(self, steps: Sequence[Many]) -> None:
        self._steps = steps

    @classmethod
    def of(cls, transforms: Sequence[tuple[Any, Callable[[Any], bool] | None]]) -> Batches | None:
        """Return the steps of transforms, each with its condition; None if one is not of ours."""
        steps: list[Many] = []
        for transform, condition in transforms:
            if not isinstance(transform, Configured):
                return None
            if condition is not None:
                steps.append(_conditional(transform.change, condition))
            elif isinstance(transform, PartTransform) and isinstance(transform, (OnKey, OnValue)):
                is_key = isinstance(transform, OnKey)
                if steps and isinstance(steps[-1], PartSteps) and steps[-1].is_key is is_key:
                    steps[-1].add(transform)
                else:
                    steps.append(PartSteps(transform, is_key=is_key))
            else:
                steps.append(transform.change_many)
        return cls(steps)

    def apply(self, records: Sequence[Any]) -> list[Any]:
        """Return the records behind the last transform. Raises an error of any kind if one of them fails."""
        changed = list(map(copied, records))
        for step in self._steps:
            if changed:
                changed = step(changed)
        return changed


def _conditional(change: Callable[[Any], Any], condition: Callable[[Any], bool]) -> Many:
    """Return the step that changes the records for which `condition` returns True."""

    def step(records: list[Any]) -> list[Any]:
        results = [change(record) if condition(record) else record for record in records]
        return [record for record in results if record is not None]

    return step


class _Edits(NamedTuple):
    """The edits of all transforms in a row for values of one schema."""

    source: Schema | None
    """The schema as values arrive; the object is referenced while its id is a key."""
    schema: Schema | None
    """The schema behind the last transform."""
    edits: Sequence[Edit] | None
    """None if a transform has no edit for the schema that arrives at it."""


class PartSteps:
    """Transforms in a row that change the keys, or the values, of records."""

    def __init__(self, transform: PartTransform[Any], *, is_key: bool) -> None:
        self.is_key = is_key
        self._transforms = [transform]
        self._cache: dict[int, _Edits] = {}

    def add(self, transform: PartTransform[Any]) -> None:
        """Append a transform of the same part."""
        self._transforms.append(transform)

    def __call__(self, records: list[Any]) -> list[Any]:
        """Change the records, and return them."""
        if self.is_key:
            schemas = [record.key_schema for record in records]
            values = [record.key for record in records]
        else:
            schemas = [record.value_schema for record in records]
            values = [record.value for record in records]
        first = schemas[0]
        if all(map(operator.is_, schemas, repeat(first))) and not any(
            map(operator.is_, values, repeat(None))
        ):
            self._change(records, values, first)
            return records
        groups: dict[int | None, tuple[list[Any], list[Any], Schema | None]] = {}
        for record, value, schema in zip(records, values, schemas, strict=True):
            key = None if value is None else id(schema)
            group = groups.setdefault(key, ([], [], schema))
            group[0].append(record)
            group[1].append(value)
        for key, (members, parts, schema) in groups.items():
            if key is None:
                self._change_each(members)
            else:
                self._change(members, parts, schema)
        return records

    def _change(self, records: list[Any], values: list[Any], schema: Schema | None) -> None:
        """Change records of one schema, whose values are not null."""
        made = self._cache.get(id(schema)) or self._learn(schema)
        if made.edits is None:
            self._change_each(records)
            return
        dicts = list(map(dict.copy, values))  # raises TypeError for what is no dict
        for edit in made.edits:
            edit(dicts, records)
        if self.is_key:
            for record, value in zip(records, dicts, strict=True):
                record.key = value
                record.key_schema = made.schema
        else:
            for record, value in zip(records, dicts, strict=True):
                record.value = value
                record.value_schema = made.schema

    def _change_each(self, records: list[Any]) -> None:
        for transform in self._transforms:
            records = transform.change_many(records)

    def _learn(self, schema: Schema | None) -> _Edits:
        """Return the edits for a schema, and put them into the cache in place of the oldest."""
        edits: list[Edit] = []
        is_whole = True
        current = schema
        for transform in self._transforms:
            if current is None:
                edit = transform.plain_edit()
            else:
                plan = transform.plan_of(current)
                current, edit = plan.schema, plan.edit
            if edit is None:
                is_whole = False
                break
            edits.append(edit)
        if len(self._cache) >= _CACHED_SCHEMAS:
            del self._cache[next(iter(self._cache))]
        made = self._cache[id(schema)] = _Edits(schema, current, edits if is_whole else None)
        return made
