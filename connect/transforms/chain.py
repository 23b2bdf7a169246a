"""The chain of a connector's transforms, as one task applies it to batches of records."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

from connect.api.records import SinkRecord, SourceRecord
from connect.api.transform import Predicate, Transform
from connect.errors import ConfigError, ConnectError
from connect.transforms.batches import Batches
from connect.transforms.declared import Declared, TransformConfig, examine, full_keys
from connect.transforms.parts import Configured, copied

_log = logging.getLogger(__name__)
_P = TypeVar("_P", Transform, Predicate)
R = TypeVar("R", SourceRecord, SinkRecord)
_Apply = Callable[[Any], Any]


class TransformError(ConnectError):
    """An error for a record that a transform, or its predicate, has failed on; the cause is chained."""

    stage: ClassVar[str] = "TRANSFORMATION"
    """The name of the stage in Kafka's error reports (KIP-298)."""

    def __init__(
        self, alias: str, transform: type[Transform], record: SourceRecord | SinkRecord, reason: str
    ) -> None:
        place = record.topic
        if isinstance(record, SinkRecord):
            place = f"{record.topic}, partition {record.partition}, offset {record.offset}"
        super().__init__(
            f"transform {alias} ({transform.__name__}) failed on a record of topic {place}: {reason}"
        )
        self.alias = alias
        self.transform = transform
        """The transform's class."""
        self.record = record
        """The record as it was before the first transform."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A configured transform, with its predicate."""

    alias: str
    transform: type[Transform]
    apply: _Apply


class TransformChain:
    """The configured transforms of one task, in order. Its methods are called from one thread at a time."""

    def __init__(
        self,
        steps: Sequence[_Step],
        plugins: Sequence[Transform | Predicate],
        batches: Batches | None = None,
    ) -> None:
        self._steps = tuple(steps)
        self._batches = batches
        self._applies = tuple(step.apply for step in steps)
        self._plugins = plugins

    @classmethod
    def configured(cls, connector_config: Mapping[str, Any]) -> Self:
        """Create the chain that a connector's config declares; an empty one if it declares none.

        Raises ConfigError, with the full key, for the first invalid setting.
        """
        declared = examine(connector_config)
        if declared.errors:
            raise declared.errors[0]
        plugins: list[Transform | Predicate] = []
        try:
            predicates = {
                alias: _made(plugin, Predicate, plugins) for alias, plugin in declared.predicates.items()
            }
            transforms = [(t, _made(t, Transform, plugins)) for t in declared.transforms]
        except BaseException:
            _close(plugins)
            raise
        # A transform of ours changes its record in place: the first of several in a row gets a copy.
        before = (False, *(isinstance(transform, Configured) for _, transform in transforms))
        steps = [
            _step(t, made, predicates, copy) for (t, made), copy in zip(transforms, before, strict=False)
        ]
        conditions = [_condition(t.common, predicates) for t, _ in transforms]
        batches = Batches.of([(made, c) for (_, made), c in zip(transforms, conditions, strict=True)])
        return cls(steps, plugins, batches)

    @property
    def is_empty(self) -> bool:
        """True if records pass the chain as they are."""
        return not self._steps

    def apply(
        self, records: Sequence[R], on_error: Callable[[TransformError, R], None] | None = None
    ) -> list[R]:
        """Return the records behind the last transform, in order: none, one or several for each.

        A record that fails is passed to `on_error`, as it was before the first transform, and is left out.
        Without `on_error` the first failure raises its TransformError.
        """
        applies = self._applies
        if not applies:
            return list(records)
        if self._batches is not None and len(records) > 1:
            # The records themselves are not changed, so what fails is done again, one by one.
            with suppress(Exception):
                return self._batches.apply(records)
        results: list[R] = []
        append = results.append
        for record in records:
            current: Any = record
            kind = type(record)
            step = 0
            try:
                for apply in applies:
                    current = apply(current)
                    if type(current) is not kind:
                        results.extend(self._spread(current, record, step))
                        break
                    step += 1
                else:
                    append(current)
            except Exception as e:
                error = e if isinstance(e, TransformError) else self._error(step, record, e)
                if on_error is None:
                    raise error from error.__cause__
                on_error(error, record)
        return results

    def _spread(self, result: Any, original: R, step: int) -> list[R]:
        """Return the chain's records for a result of `step` that is not one record.

        Raises TransformError if `result` is neither None nor a sequence of records.
        """
        if result is None:
            return []
        kind = type(original)
        if not isinstance(result, Sequence) or any(type(r) is not kind for r in result):
            shown = f"a result is {kind.__name__}, several of them or None; it is {result!r:.200}"
            raise self._error(step, original, TypeError(shown))
        return [r for part in result for r in self._passed(part, original, step + 1)]

    def _passed(self, record: R, original: R, start: int) -> list[R]:
        """Return the records for one record before step `start`. Raises TransformError."""
        current: Any = record
        for step in range(start, len(self._applies)):
            try:
                current = self._applies[step](current)
            except Exception as e:
                raise self._error(step, original, e) from e
            if type(current) is not type(original):
                return self._spread(current, original, step)
        return [current]

    def _error(self, step: int, record: SourceRecord | SinkRecord, cause: Exception) -> TransformError:
        failed = self._steps[step]
        reason = str(cause) if isinstance(cause, ConnectError) else f"{type(cause).__name__}: {cause}"
        error = TransformError(failed.alias, failed.transform, record, reason)
        error.__cause__ = cause
        return error

    def close(self) -> None:
        """Close all transforms and predicates; an error of one is logged, and the others are closed."""
        plugins, self._plugins = self._plugins, ()
        _close(plugins)


def _made(declared: Declared, base: type[_P], plugins: list[Transform | Predicate]) -> _P:
    """Return a configured object of the declared class, and append it to `plugins`.

    Raises ConfigError, with the full key, if the class refuses its settings or cannot be instantiated.
    """
    settings = {key: _text(value) for key, value in declared.settings.items()}
    assert declared.plugin is not None
    try:
        plugin = declared.plugin()
        assert isinstance(plugin, base)
        plugins.append(plugin)
        with full_keys(declared.prefix):
            plugin.configure(settings)
    except ConfigError:
        raise
    except Exception as e:
        reason = f"cannot be configured: {type(e).__name__}: {e}"
        raise ConfigError(f"{declared.prefix}type", declared.common.type, reason) from e
    return plugin


def _step(
    declared: Declared, transform: Transform, predicates: Mapping[str, Predicate], follows_copy: bool
) -> _Step:
    """Return the step of a transform; `follows_copy` says that its record is the chain's own copy."""
    common = declared.common
    assert isinstance(common, TransformConfig)
    apply: _Apply = transform.change if isinstance(transform, Configured) else transform.apply
    condition = _condition(common, predicates)
    if condition is not None:
        apply = _conditional(apply, condition)
    if isinstance(transform, Configured) and not follows_copy:
        apply = _on_copy(apply)
    return _Step(declared.alias, type(transform), apply)


def _on_copy(apply: _Apply) -> _Apply:
    """Return a function that passes a copy of the record on."""
    return lambda record: apply(copied(record))


def _condition(common: object, predicates: Mapping[str, Predicate]) -> Callable[[Any], bool] | None:
    """Return the condition of a transform, None if it has no predicate (KIP-585)."""
    assert isinstance(common, TransformConfig)
    if not common.predicate:
        return None
    test, outcome = predicates[common.predicate].test, not common.negate
    return lambda record: bool(test(record)) is outcome


def _conditional(apply: _Apply, condition: Callable[[Any], bool]) -> _Apply:
    """Return a function that applies a transform to records for which `condition` returns True."""
    return lambda record: apply(record) if condition(record) else record


def _text(value: object) -> str:
    """Return a setting as the text that plugins get; a connector's JSON may have numbers and lists."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(_text, value))
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _close(plugins: Sequence[Transform | Predicate]) -> None:
    for plugin in plugins:
        try:
            plugin.close()
        except Exception:
            _log.exception("%s: close failed", type(plugin).__name__)
