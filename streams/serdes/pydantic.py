"""JSON of pydantic models. pydantic is not imported here: a model's own methods are called."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from streams.serdes.base import Serde

P = TypeVar("P")


class PydanticJson(Serde[P]):
    """A model's JSON, validated when read."""

    def __init__(self, model: type[P]) -> None:
        self.model = model
        described: Any = model
        self.immutable = False  # a frozen model's fields may be lists
        self._validate = described.model_validate_json
        self._dump = described.model_dump_json

    def serialize(self, value: P) -> bytes:
        if not isinstance(value, self.model):
            raise TypeError(f"expected {self.model.__name__}, got {type(value).__name__}")
        return cast(str, self._dump(value)).encode()

    def deserialize(self, data: bytes) -> P:
        return cast(P, self._validate(data))  # pydantic.ValidationError is a ValueError

    def __repr__(self) -> str:
        return f"PydanticJson({self.model.__name__})"


def is_pydantic_model(type_: object) -> bool:
    """Return True for a model class of pydantic, version 2 or later."""
    return (
        isinstance(type_, type) and hasattr(type_, "model_validate_json") and hasattr(type_, "model_fields")
    )
