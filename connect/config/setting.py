"""Declarations of settings: key, kind, default and documentation, like Connect's ConfigDef.ConfigKey."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

Kind = Literal["BOOLEAN", "STRING", "INT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"]
Importance = Literal["HIGH", "MEDIUM", "LOW"]
Width = Literal["NONE", "SHORT", "MEDIUM", "LONG"]


class Password(str):
    """A string that logs and reports show as `[hidden]`."""

    def __repr__(self) -> str:
        return "[hidden]"

    __str__ = __repr__

    @property
    def secret(self) -> str:
        """The password itself."""
        return "".join(self)


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """The arguments of `setting(...)`, before the attribute's name and annotation are known."""

    doc: str
    default: Any
    key: str | None
    importance: Importance
    group: str
    width: Width
    display_name: str | None
    kind: Kind | None
    dependents: Sequence[str]
    check: Callable[[Any], None] | None
    recommend: Callable[[Mapping[str, Any]], Sequence[Any]] | None = None
    visible: Callable[[Mapping[str, Any]], bool] | None = None


def setting(
    doc: str,
    *,
    default: Any = REQUIRED,
    key: str | None = None,
    importance: Importance = "MEDIUM",
    group: str = "",
    width: Width = "MEDIUM",
    display_name: str | None = None,
    kind: Kind | None = None,
    dependents: Sequence[str] = (),
    check: Callable[[Any], None] | None = None,
    recommend: Callable[[Mapping[str, Any]], Sequence[Any]] | None = None,
    visible: Callable[[Mapping[str, Any]], bool] | None = None,
) -> Any:
    """Declare a setting as a class attribute: `batch_size: int = setting("Records per poll.", default=2000)`.

    The key is the attribute's name with dots for underscores, unless `key` gives another. The annotation
    gives the kind: str, int, float, bool, list[str], Password, Literal[...] (a choice), each also `| None`.
    `check` gets the parsed value and raises ValueError saying what is allowed.

    `recommend` and `visible` are Kafka's Recommender, for tools that show a form: they get the parsed values
    by key, and return the values to offer, and whether the setting matters with the others' values.
    `dependents` names the keys whose recommended values or visibility this one changes.
    """
    return Spec(
        doc=doc,
        default=default,
        key=key,
        importance=importance,
        group=group,
        width=width,
        display_name=display_name,
        kind=kind,
        dependents=dependents,
        check=check,
        recommend=recommend,
        visible=visible,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A declared setting."""

    attribute: str
    key: str
    kind: Kind
    choices: tuple[str, ...]
    spec: Spec

    @property
    def required(self) -> bool:
        """True if there is no default."""
        return self.spec.default is REQUIRED

    @classmethod
    def declared(cls, attribute: str, annotation: Any, spec: Spec) -> Setting:
        """Create a setting from a class attribute and its annotation."""
        annotation = _without_none(annotation)
        choices: tuple[str, ...] = ()
        if typing.get_origin(annotation) is Literal:
            choices = typing.get_args(annotation)
            annotation = str
        kind = spec.kind or _KINDS.get(typing.get_origin(annotation) or annotation)
        if kind is None:
            raise TypeError(
                f"setting {attribute} needs an annotation: str, int, float, bool, list[str], Password or "
                f"Literal[...], each also | None; it has {annotation!r}"
            )
        return cls(
            attribute=attribute,
            key=spec.key or attribute.replace("_", "."),
            kind=kind,
            choices=choices,
            spec=spec,
        )

    def parse(self, raw: object) -> Any:
        """Return the value parsed as the setting's kind. Raises ValueError with the allowed values."""
        value = _parse(self.kind, raw)
        if self.choices and value not in self.choices:
            matches = [c for c in self.choices if c.lower() == str(value).lower()]
            if not matches:
                raise ValueError(f"must be one of {', '.join(self.choices)}")
            value = matches[0]
        if self.spec.check is not None:
            self.spec.check(value)
        return value


def _without_none(annotation: Any) -> Any:
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        members = [a for a in typing.get_args(annotation) if a is not type(None)]
        if len(members) == 1:
            return members[0]
    return annotation


_KINDS: dict[Any, Kind] = {
    str: "STRING",
    int: "INT",
    float: "DOUBLE",
    bool: "BOOLEAN",
    list: "LIST",
    Password: "PASSWORD",
}
_INT_BITS = {"INT": 32, "LONG": 64}


def _parse(kind: Kind, raw: object) -> Any:
    if kind == "LIST" and isinstance(raw, (list, tuple)):
        return [str(item) for item in raw]
    text = {True: "true", False: "false"}[raw] if isinstance(raw, bool) else str.__str__(str(raw)).strip()
    if kind == "BOOLEAN":
        if text.lower() not in ("true", "false"):
            raise ValueError("must be true or false")
        return text.lower() == "true"
    if kind in _INT_BITS:
        return _parse_int(text, _INT_BITS[kind])
    if kind == "DOUBLE":
        try:
            return float(text)
        except ValueError:
            raise ValueError("must be a number") from None
    if kind == "LIST":
        return [item.strip() for item in text.split(",") if item.strip()]
    return Password(raw) if kind == "PASSWORD" else text


def _parse_int(text: str, bits: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise ValueError("must be a whole number") from None
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"must fit {bits} bits")
    return value
