"""The OpenAPI document of the REST interface (`/openapi.json`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

_TEXT = {"type": "string"}
_NUMBER = {"type": "integer", "minimum": 0}
_FLAG = {"type": "boolean"}
_OBJECT: dict[str, Any] = {"type": "object"}
_CONFIG = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
_OFFSETS = {
    "type": "object",
    "required": ["offsets"],
    "properties": {
        "offsets": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["partition"],
                "properties": {"partition": _OBJECT, "offset": {"type": ["object", "null"]}},
                "additionalProperties": False,
            },
        }
    },
    "additionalProperties": False,
}
_NEW = {
    "type": "object",
    "required": ["name", "config"],
    "properties": {
        "name": _TEXT,
        "config": _CONFIG,
        "initial_state": {"type": ["string", "null"], "enum": ["RUNNING", "PAUSED", "STOPPED", None]},
    },
    "additionalProperties": False,
}
_PATCH = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null"]}}
_FORWARD = {"forward": _FLAG}
_EXPAND = {"expand": {"type": "array", "items": {"type": "string", "enum": ["status", "info"]}}}
_RESTART = {"includeTasks": _FLAG, "onlyFailed": _FLAG, **_FORWARD}


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of a path: what it does, its successes, query parameters, body and errors."""

    summary: str
    success: tuple[int, ...] = (200,)
    query: dict[str, Any] | None = None
    body: dict[str, Any] | None = None
    errors: tuple[int, ...] = (404, 409)


_ONE = "/connectors/{connector}"
_PLUGIN = "/connector-plugins/{plugin}/config"
_REFUSED = (400, 404, 409, 415)
OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", "/"): Operation("Version of the worker and id of its Kafka cluster", errors=()),
    ("GET", "/health"): Operation("Health of the worker (KIP-1017)", errors=(500, 503)),
    ("GET", "/livez"): Operation("Whether the worker's process answers", errors=()),
    ("GET", "/readyz"): Operation("Whether the worker handles requests", errors=(503,)),
    ("GET", "/metrics"): Operation("Metrics, as Prometheus scrapes them", errors=()),
    ("GET", "/openapi.json"): Operation("This document", errors=()),
    ("GET", "/connectors"): Operation("Names of all connectors", query=_EXPAND, errors=(409,)),
    ("POST", "/connectors"): Operation("Create a connector", (201,), _FORWARD, _NEW, (400, 409, 415)),
    ("GET", _ONE): Operation("Config and tasks of a connector"),
    ("DELETE", _ONE): Operation("Delete a connector", (204,), _FORWARD),
    ("GET", f"{_ONE}/config"): Operation("Config of a connector"),
    ("PUT", f"{_ONE}/config"): Operation(
        "Create a connector or replace its config", (200, 201), _FORWARD, _CONFIG, (400, 409, 415)
    ),
    ("PATCH", f"{_ONE}/config"): Operation(
        "Change keys of a config; null deletes a key (KIP-477)", (200,), _FORWARD, _PATCH, _REFUSED
    ),
    ("GET", f"{_ONE}/topics"): Operation("Topics that a connector has used (KIP-558)", errors=(403,)),
    ("PUT", f"{_ONE}/topics/reset"): Operation(
        "Forget the topics that a connector has used", (202,), errors=(403,)
    ),
    ("GET", f"{_ONE}/status"): Operation("States of a connector and its tasks"),
    ("POST", f"{_ONE}/restart"): Operation("Restart a connector (KIP-745)", (202, 204), _RESTART),
    ("PUT", f"{_ONE}/pause"): Operation("Pause a connector and its tasks", (202,)),
    ("PUT", f"{_ONE}/resume"): Operation("Resume a connector", (202,)),
    ("PUT", f"{_ONE}/stop"): Operation("Stop a connector and remove its tasks (KIP-875)", (204,), _FORWARD),
    ("GET", f"{_ONE}/tasks"): Operation("Configs of a connector's tasks"),
    ("POST", f"{_ONE}/tasks"): Operation(
        "Take task configs from another worker (KIP-507)",
        (204,),
        _FORWARD,
        {"type": "array", "items": _CONFIG},
        (400, 403, 404, 409),
    ),
    ("PUT", f"{_ONE}/fence"): Operation(
        "Fence the producers of a source's former tasks (KIP-618)",
        (204,),
        _FORWARD,
        None,
        (400, 403, 404, 409),
    ),
    ("GET", f"{_ONE}/tasks/{{task}}/status"): Operation("State of a task"),
    ("POST", f"{_ONE}/tasks/{{task}}/restart"): Operation("Restart a task", (204,), _FORWARD),
    ("GET", f"{_ONE}/offsets"): Operation("Offsets of a connector (KIP-875)", errors=(400, 404, 409)),
    ("PATCH", f"{_ONE}/offsets"): Operation(
        "Change offsets of a stopped connector (KIP-875)", (200,), _FORWARD, _OFFSETS, _REFUSED
    ),
    ("DELETE", f"{_ONE}/offsets"): Operation(
        "Delete the offsets of a stopped connector (KIP-875)", (200,), _FORWARD, None, (400, 404, 409)
    ),
    ("GET", "/connector-plugins"): Operation("Plugins", query={"connectorsOnly": _FLAG}, errors=()),
    ("GET", _PLUGIN): Operation("Settings that a plugin declares (KIP-769)", errors=(404,)),
    ("PUT", f"{_PLUGIN}/validate"): Operation(
        "Check a connector's config", (200,), None, _CONFIG, (400, 404, 415)
    ),
    ("GET", "/admin/loggers"): Operation("Levels of loggers (KIP-495)", errors=()),
    ("GET", "/admin/loggers/{logger}"): Operation("Level of a logger", errors=(404,)),
    ("PUT", "/admin/loggers/{logger}"): Operation(
        "Set a logger's level, here or on all workers (KIP-976)",
        (200, 204),
        {"scope": {"type": "string", "enum": ["worker", "cluster"]}},
        {"type": "object", "required": ["level"], "properties": {"level": _TEXT}},
        (400, 404, 415),
    ),
}
"""Each method of each path."""


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    paths: dict[str, dict[str, Any]] = {}
    for (method, path), operation in OPERATIONS.items():
        paths.setdefault(path, {})[method.lower()] = _operation(path, operation)
    error = {
        "type": "object",
        "required": ["error_code", "message"],
        "properties": {"error_code": _NUMBER, "message": _TEXT},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Kafka Connect REST interface", "version": "4.4"},
        "paths": paths,
        "components": {"schemas": {"Error": error}},
    }


def _operation(path: str, operation: Operation) -> dict[str, Any]:
    names = [each[1:-1] for each in path.split("/") if each.startswith("{")]
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": _NUMBER if name == "task" else _TEXT}
        for name in names
    ]
    for name, schema in (operation.query or {}).items():
        parameters.append({"name": name, "in": "query", "required": False, "schema": schema})
    problem = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    responses: dict[str, Any] = {str(status): _success(path, status) for status in operation.success}
    for status in dict.fromkeys((*operation.errors, 500)):
        responses[str(status)] = {"description": "Failed", "content": problem}
    described: dict[str, Any] = {
        "summary": operation.summary,
        "parameters": parameters,
        "responses": responses,
    }
    if operation.body is not None:
        content = {"application/json": {"schema": operation.body}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _success(path: str, status: int) -> dict[str, Any]:
    if status == 204 or (status == 202 and not path.endswith("/restart")):
        return {"description": "Done"}
    kind = "text/plain" if path == "/metrics" else "application/json"
    return {"description": "Done", "content": {kind: {}}}
