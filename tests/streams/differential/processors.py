"""The processors, transformers and choosers of plans, as the classes of these names in
tests/java/Differential.java.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams import (
    FixedKeyProcessor,
    FixedKeyRecord,
    Processor,
    ProcessorContext,
    Record,
    RecordContext,
    ValueTransformer,
)
from tests.streams.differential.functions import MAPPERS, PREDICATES, short, text
from tests.streams.differential.plan import Step


class Teller(Processor[Any, Any]):
    """A processor that forwards its records' origins, counts records in its store, and has schedules."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.count = 0

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.store: Any = None if self.step["store"] is None else context.store(self.step["store"]["name"])
        for interval, clock in self.step["schedules"]:
            context.schedule(
                interval, lambda now, schedule=f"{clock[0]}{interval}": self.fire(schedule, now), on=clock
            )

    def process(self, record: Record[Any, Any]) -> None:
        self.count += 1
        if self.store is not None and record.key is not None:
            self.keep(record.key, record.value)
        value = None if record.value is None else short(text(record.value) + self.where())
        self.context.forward(Record(record.key, value, record.timestamp + self.step["delay"], record.headers))

    def keep(self, key: str, value: Any) -> None:
        if value is None:
            self.store.delete(key)
        else:
            self.store.put(key, short((self.store.get(key) or "") + text(value)))

    def where(self) -> str:
        if not self.step["tells"]:
            return ""
        metadata = self.context.record_metadata
        return "#none" if metadata is None else f"#{metadata.topic[:5]}:{metadata.offset}"

    def fire(self, schedule: str, now: int) -> None:
        entries = [] if self.store is None else list(self.store.all())
        where = self.where()
        self.context.forward(Record(schedule, f"{self.count}{where}{len(entries)}", now))
        if entries:
            self.store.delete(entries[0][0])


def teller(step: Step) -> Callable[[], Teller]:
    return lambda: Teller(step)


class Numberer(FixedKeyProcessor[Any, Any]):
    """A processor that appends each record's number to its value."""

    def __init__(self) -> None:
        self.count = 0

    def process(self, record: FixedKeyRecord[Any, Any]) -> None:
        self.count += 1
        value = None if record.value is None else short(f"{text(record.value)}{self.count}")
        self.context.forward(record.with_value(value))


def numberer() -> Numberer:
    return Numberer()


class Transformer(ValueTransformer[Any, Any, Any]):
    """A transformer that maps values, null ones too."""

    def __init__(self, step: Step) -> None:
        self.step = step

    def transform(self, key: Any, value: Any) -> Any:
        return MAPPERS[self.step["f"]](value)


def transformer(step: Step) -> Callable[[], Transformer]:
    return lambda: Transformer(step)


class Chooser:
    """A function that chooses one of two topics for a record."""

    def __init__(self, step: Step) -> None:
        self.step = step

    def __call__(self, key: Any, value: Any, context: RecordContext) -> str:
        is_first = PREDICATES[self.step["f"]](key, value)
        topic: str = self.step["topics"][0 if is_first else 1]
        return topic

    def __str__(self) -> str:
        return "chooser"
