"""The base of classes of settings: immutable, with named values that all have defaults.

A type checker sees a frozen dataclass with keywords only. It is not a dataclass because `BrokerConfig` has a
hundred fields: the code that `dataclasses` generates and compiles for them dominated a broker's start.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, NoReturn, Self, dataclass_transform


class Field(NamedTuple):
    """A field's default value and, in ``about``, its declaration."""

    default: Any
    about: object = None


def field(default: Any, about: object = None) -> Any:
    """Declare a field of a `Settings`. The default is shared: do not mutate it."""
    return Field(default, about)


@dataclass_transform(kw_only_default=True, frozen_default=True)
class _Declaring(type):
    """A metaclass that turns declared fields into slots, and collects them in ``fields`` with the bases'."""

    fields: dict[str, Field]

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _Declaring:
        own = {key: value for key, value in namespace.items() if isinstance(value, Field)}
        rest = {key: value for key, value in namespace.items() if key not in own}
        made = super().__new__(cls, name, bases, {**rest, "__slots__": tuple(own)})
        inherited = {key: value for base in bases for key, value in getattr(base, "fields", {}).items()}
        made.fields = {**inherited, **own}
        return made


class Settings(metaclass=_Declaring):
    """The base of classes of settings; two are equal if all their values are."""

    fields: ClassVar[dict[str, Field]]

    def __init__(self, **values: Any) -> None:
        unknown = values.keys() - self.fields.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(unknown))}")
        for name, declared in self.fields.items():
            object.__setattr__(self, name, values.get(name, declared.default))

    def replaced(self, **values: Any) -> Self:
        """Return a copy with ``values`` replaced."""
        return type(self)(**{**{name: getattr(self, name) for name in self.fields}, **values})

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} cannot be changed: replaced() makes another one")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} cannot be changed: replaced() makes another one")

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.fields)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.fields)
        return f"{type(self).__name__}({values})"
