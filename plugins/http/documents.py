"""Paths into JSON documents, and templates."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_PLACE = re.compile(r"\$\{(\w+)}")


def at_path(document: Any, path: str) -> Any:
    """Return the value at a path such as `data.items.0`, or None; an empty path is the whole document."""
    for name in filter(None, path.split(".")):
        if isinstance(document, Mapping):
            document = document.get(name)
        elif isinstance(document, list) and name.isdecimal() and int(name) < len(document):
            document = document[int(name)]
        else:
            return None
    return document


def filled(template: str, values: Mapping[str, Any], quote: Callable[[str], str] = str) -> str:
    """Return a template with `${name}` replaced by `values[name]`; names without a value stay."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name not in values:
            return match[0]
        return "" if values[name] is None else quote(str(values[name]))

    return _PLACE.sub(value, template)
