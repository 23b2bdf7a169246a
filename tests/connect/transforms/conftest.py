"""Shared helpers: a transform with its settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from connect.transforms import transform_class

Apply = Callable[..., Any]


@pytest.fixture
def apply() -> Apply:
    """Return a function that applies the transform of a name, with its settings, to a record."""

    def apply(name: str, record: Any, **settings: str) -> Any:
        transform = transform_class("type", name)()
        transform.configure({key.replace("_", "."): value for key, value in settings.items()})
        return transform.apply(record)

    return apply
