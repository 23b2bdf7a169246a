"""Reports about a plugin's settings: Connect's REST responses, and the docs from the same declaration."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from connect.config.declaration import Config
from connect.config.setting import Password, Setting
from kafka_client.errors import ConfigError


def definition(declared: Setting, order: int) -> dict[str, Any]:
    """Return one entry of GET /connector-plugins/{p}/config."""
    spec = declared.spec
    return {
        "name": declared.key,
        "type": declared.kind,
        "required": declared.required,
        "default_value": None if declared.required else _shown(spec.default),
        "importance": spec.importance,
        "documentation": spec.doc,
        "group": spec.group or None,
        "width": spec.width,
        "display_name": spec.display_name or declared.key,
        "dependents": list(spec.dependents),
        "order": order,
        "order_in_group": order,
    }


def validate(name: str, declarations: Sequence[type[Config]], raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the response of PUT /connector-plugins/{p}/config/validate: the errors of each key."""
    configs: list[dict[str, Any]] = []
    groups: list[str] = []
    for declaration in declarations:
        _, errors = declaration.examine(raw)
        for order, declared in enumerate(declaration.settings().values(), start=1):
            group = declared.spec.group
            if group and group not in groups:
                groups.append(group)
            configs.append(
                {"definition": definition(declared, order), "value": _value(declared, raw, errors)}
            )
    error_count = sum(len(c["value"]["errors"]) for c in configs)
    return {"name": name, "error_count": error_count, "groups": groups, "configs": configs}


def _value(declared: Setting, raw: Mapping[str, Any], errors: Sequence[ConfigError]) -> dict[str, Any]:
    value = raw.get(declared.key, None if declared.required else declared.spec.default)
    shown = "[hidden]" if declared.kind == "PASSWORD" and value is not None else _shown(value)
    return {
        "name": declared.key,
        "value": shown,
        "recommended_values": list(declared.choices),
        "errors": [
            f"Invalid value {e.value} for configuration {e.key}: {e.allowed}"
            for e in errors
            if e.key == declared.key
        ],
        "visible": True,
    }


def _shown(value: Any) -> str | None:
    if value is None or isinstance(value, Password):
        return None if value is None else "[hidden]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def unknown_keys(
    declarations: Sequence[type[Config]],
    raw: Mapping[str, Any],
    prefixes: Sequence[str] = (),
    others: Collection[str] = (),
) -> dict[str, str | None]:
    """Return the keys of `raw` that are neither declared nor in `others`.

    Each has the most similar valid key, or None, for a warning about a typing error.
    """
    valid = [*(key for declaration in declarations for key in declaration.settings()), *others]
    unknown = [k for k in raw if k not in valid and not k.startswith(tuple(prefixes))]
    return {k: next(iter(difflib.get_close_matches(k, valid, 1, 0.7)), None) for k in unknown}


def document(declaration: type[Config]) -> str:
    """Return the declaration as Markdown: the class docstring and a table of its settings."""
    lines = [
        inspect.getdoc(declaration) or declaration.__name__,
        "",
        "| key | type | default | |",
        "|---|---|---|---|",
    ]
    for s in declaration.settings().values():
        unset = s.spec.default is None or s.spec.default == []
        default = "required" if s.required else "" if unset else f"`{_shown(s.spec.default)}`"
        kind = " \\| ".join(s.choices) or s.kind.lower()
        lines.append(f"| `{s.key}` | {kind} | {default} | {s.spec.doc} |")
    return "\n".join(lines) + "\n"
