"""The public surface of `kafka_client`, in full: every name, and the signatures of what classes offer.

A change shows as a difference from golden/public_surface.txt; REWRITE=1 writes the file again.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path

import kafka_client
from kafka_client import errors

GOLDEN = Path(__file__).parent / "golden" / "public_surface.txt"
FOR_BATCHES = {"BatchFetcher", "BatchProducer", "Fetched", "GroupMember", "TransactionalProducer"}
"""Exported for the packages beside; applications need none of them."""


_PLACE_IN_MEMORY = re.compile(r" at 0x[0-9a-f]+")


def lines() -> Iterator[str]:
    for name in kafka_client.__all__:
        exported = getattr(kafka_client, name)
        if inspect.isclass(exported):
            yield from of_class(name, exported)
        elif inspect.isfunction(exported):
            yield f"def {name}{inspect.signature(exported)}"
        elif callable(exported) and not isinstance(exported, type):
            yield f"{name}"
        else:
            yield f"{name} = {exported!r}"
    for name, error in sorted(vars(errors).items()):
        if inspect.isclass(error) and issubclass(error, errors.MillstreamError):
            yield f"errors.{name}({', '.join(base.__name__ for base in error.__bases__)})"


def of_class(name: str, exported: type) -> Iterator[str]:
    if issubclass(exported, enum.Enum):
        yield f"enum {name}: {', '.join(exported.__members__)}"
        return
    yield f"class {name}"
    if dataclasses.is_dataclass(exported):
        yield from (f"    {field.name}: {field.type}" for field in dataclasses.fields(exported))
    elif issubclass(exported, tuple):
        types = {
            name: getattr(kind, "__forward_arg__", kind) for name, kind in exported.__annotations__.items()
        }
        yield from (f"    {field}: {types[field]}" for field in exported._fields)  # type: ignore[attr-defined]
    elif "__init__" in vars(exported) or "__init__" in dir(exported):
        yield from signature("__init__", exported.__init__)  # type: ignore[misc]
    for member in sorted(dir(exported)):
        if member.startswith("_") and member not in ("__aenter__", "__aiter__", "__anext__", "__await__"):
            continue
        value = inspect.getattr_static(exported, member)
        if isinstance(value, classmethod | staticmethod):
            value = value.__func__
        if isinstance(value, property):
            yield f"    {member} -> {value.fget.__annotations__['return']}"
        elif inspect.isfunction(value) and value.__module__.startswith("kafka_client"):
            yield from signature(member, value)


def signature(name: str, function: object) -> Iterator[str]:
    """Yield a signature with one parameter per line, so that changing one changes one line."""
    inspected = inspect.signature(function)  # type: ignore[arg-type]
    is_async = inspect.iscoroutinefunction(function)
    parameters = [parameter for parameter in inspected.parameters.values() if parameter.name != "self"]
    returned = (
        "" if inspected.return_annotation is inspect.Signature.empty else f" -> {inspected.return_annotation}"
    )
    yield f"    {'async ' if is_async else ''}{name}{returned}"
    for parameter in parameters:
        star = "* " if parameter.kind is inspect.Parameter.KEYWORD_ONLY else ""
        yield _PLACE_IN_MEMORY.sub("", f"        {star}{parameter}")


def test_the_surface_is_the_golden_one() -> None:
    surface = "\n".join(lines()) + "\n"
    if os.environ.get("REWRITE"):
        GOLDEN.write_text(surface)
    assert surface == GOLDEN.read_text()


def test_every_name_for_applications_is_on_the_page() -> None:
    page = (Path(kafka_client.__file__).parents[1] / "docs" / "client.md").read_text()
    for name in ("Client", "Producer", "Consumer", "Admin", "ConsumerRecord", "RecordMetadata", *FOR_BATCHES):
        assert name in kafka_client.__all__
        assert f"`{name}" in page, name
