"""Our own errors as JSON, so that an error in the driver process is the same error where it was called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect.api import ConnectError
from plugins.spark.errors import JobBrokenOff, SchemaConflict, TopicRecreated

_TYPES: dict[str, type[ConnectError]] = {
    kind.__name__: kind for kind in (SchemaConflict, TopicRecreated, JobBrokenOff)
}


def error_type(error: Exception) -> dict[str, Any]:
    """Return the members of a response that name the error's type and its facts; none for other errors."""
    name = type(error).__name__
    return {"type": name, "facts": list(error.args)} if name in _TYPES else {}


def typed_error(response: Mapping[str, Any]) -> ConnectError | None:
    """Return the error that a response names, or None if it names none of ours."""
    kind = _TYPES.get(str(response.get("type")))
    return None if kind is None else kind(*response["facts"])
