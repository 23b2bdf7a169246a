"""Reports about a plugin's settings: Connect's REST responses, and the docs from the same declaration."""

from __future__ import annotations

import difflib
import inspect
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from connect.config.declaration import Config
from connect.config.setting import Password, Setting
from connect.errors import StatedError
from kafka_client.errors import ConfigError

MISSING = "is required"
"""Text of the ConfigError of a missing setting."""


def definition(declared: Setting, order: int) -> dict[str, Any]:
    """Return one entry of GET /connector-plugins/{p}/config; `order` counts a group's settings from 1."""
    spec = declared.spec
    return {
        "name": declared.key,
        "type": declared.kind,
        "required": declared.required,
        "default_value": None if declared.required else _shown(spec.default),
        "importance": spec.importance,
        "documentation": spec.doc,
        "group": spec.group or None,
        "order_in_group": order if spec.group else -1,
        "width": spec.width,
        "display_name": spec.display_name or declared.key,
        "dependents": list(spec.dependents),
    }


def definitions(declarations: Sequence[type[Config]]) -> list[dict[str, Any]]:
    """Return the response of GET /connector-plugins/{p}/config; a key counts where it is declared first."""
    orders: Counter[str] = Counter()
    entries = []
    for declared in _declared(declarations):
        orders[declared.spec.group] += 1
        entries.append(definition(declared, orders[declared.spec.group]))
    return entries


def validate(
    name: str,
    declarations: Sequence[type[Config]],
    raw: Mapping[str, Any],
    further: Iterable[ConfigError] = (),
) -> dict[str, Any]:
    """Return the response of PUT /connector-plugins/{p}/config/validate: all errors of each key.

    `further` are errors that the declarations do not know. An error about a key that is not declared has an
    entry without a definition, as in Kafka.
    """
    errors = [e for declaration in declarations for e in declaration.examine(raw)[1]]
    errors.extend(further)
    texts: dict[str, dict[str, None]] = {}
    for error in errors:
        texts.setdefault(error.key, {})[error_text(error)] = None
    declared = _declared(declarations)
    values = _parsed(declared, raw)
    secrets = [str.__str__(raw[s.key]) for s in declared if s.kind == "PASSWORD" and raw.get(s.key)]
    configs: list[dict[str, Any]] = []
    for described, each in zip(definitions(declarations), declared, strict=True):
        value = _value(each, raw, values, [_hidden(text, secrets) for text in texts.pop(each.key, ())])
        configs.append({"definition": described, "value": value})
    for key, of_key in texts.items():
        configs.append(
            {"definition": None, "value": _undeclared(key, raw, [_hidden(t, secrets) for t in of_key])}
        )
    groups = dict.fromkeys(each.spec.group for each in declared if each.spec.group)
    error_count = sum(len(c["value"]["errors"]) for c in configs)
    return {"name": name, "error_count": error_count, "groups": list(groups), "configs": configs}


def error_text(error: ConfigError) -> str:
    """Return an error as Kafka's ConfigException words it."""
    if isinstance(error, StatedError):
        return error.allowed
    if error.allowed == MISSING:
        return f'Missing required configuration "{error.key}" which has no default value.'
    return f"Invalid value {error.value} for configuration {error.key}: {error.allowed}"


def _declared(declarations: Sequence[type[Config]]) -> list[Setting]:
    settings: dict[str, Setting] = {}
    for declaration in declarations:
        for key, each in declaration.settings().items():
            settings.setdefault(key, each)
    return list(settings.values())


def _parsed(declared: Sequence[Setting], raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the valid values by key, with the defaults of keys that are not set."""
    values: dict[str, Any] = {}
    for each in declared:
        value = raw.get(each.key)
        if value is None or (value == "" and each.required):
            if not each.required:
                values[each.key] = each.spec.default
            continue
        with suppress(ValueError):
            values[each.key] = each.parse(value)
    return values


def _value(
    declared: Setting, raw: Mapping[str, Any], values: Mapping[str, Any], errors: list[str]
) -> dict[str, Any]:
    value = raw.get(declared.key, None if declared.required else declared.spec.default)
    is_secret = declared.kind == "PASSWORD"
    recommended: Sequence[Any] = declared.choices
    visible = True
    try:
        if declared.spec.recommend is not None:
            recommended = declared.spec.recommend(values)
        if declared.spec.visible is not None:
            visible = bool(declared.spec.visible(values))
    except Exception as e:
        errors = [*errors, f"Invalid value for configuration {declared.key}: its recommender failed: {e!r}"]
    return {
        "name": declared.key,
        "value": "[hidden]" if is_secret and value is not None else _shown(value),
        "recommended_values": [] if is_secret else [_shown(each) for each in recommended],
        "errors": errors,
        "visible": visible,
    }


def _undeclared(key: str, raw: Mapping[str, Any], errors: list[str]) -> dict[str, Any]:
    # Nobody has said whether the value is a secret.
    shown = None if raw.get(key) is None else "[hidden]"
    return {"name": key, "value": shown, "recommended_values": [], "errors": errors, "visible": True}


def _hidden(text: str, secrets: Sequence[str]) -> str:
    """Return an error's text without the passwords that it quotes."""
    for secret in secrets:
        text = text.replace(secret, "[hidden]")
    return text


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
