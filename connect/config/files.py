"""Config files of workers and connectors: Java properties, or JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kafka_client.errors import ConfigError
from kafka_client.java_properties import read_properties, read_text


def read_config_file(path: Path) -> dict[str, Any]:
    """Read a worker's or connector's config. Raises ConfigError if the file is not valid.

    JSON may be the flat map or `{"name": ..., "config": {...}}`, as Kafka's standalone worker takes both.
    """
    if path.suffix != ".json":
        return dict(read_properties(path))
    try:
        document = json.loads(read_text(path))
    except ValueError as e:
        raise ConfigError("file", path, f"is not JSON: {e}") from e
    if isinstance(document, dict) and isinstance(document.get("config"), dict):
        document = {"name": document.get("name"), **document["config"]}
    if not isinstance(document, dict):
        raise ConfigError("file", path, "must hold a JSON object")
    return {str(key): value for key, value in document.items() if value is not None}
