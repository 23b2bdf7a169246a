"""FileConfigProvider and DirectoryConfigProvider: values from property files, and from files of one value."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Set
from typing import Any

from connect.config.providers.allowed_paths import KEY, AllowedPaths
from connect.config.providers.provider import ConfigProvider
from kafka_client.errors import ConfigError
from kafka_client.java_properties import read_properties

_log = logging.getLogger(__name__)


class FileConfigProvider(ConfigProvider):
    """`${file:/path/secrets.properties:key}`: the value of a key in a property file."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._paths = AllowedPaths(config.get(KEY))

    def get(self, path: str, keys: Set[str]) -> Mapping[str, str]:
        """Return the values of the keys in the property file at `path`."""
        file = self._paths.allowed(path) if path else None
        if file is None:
            return {}
        try:
            properties = read_properties(file)
        except (OSError, ConfigError) as e:
            reason = e.strerror if isinstance(e, OSError) else "cannot be parsed"
            raise ConfigError("file", path, f"cannot be read as properties: {reason}") from None
        return {key: properties[key] for key in keys if key in properties}


class DirectoryConfigProvider(ConfigProvider):
    """`${directory:/path:name}`: the whole text of the file `name` in a folder, as of Kubernetes' secrets."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._paths = AllowedPaths(config.get(KEY))

    def get(self, path: str, keys: Set[str]) -> Mapping[str, str]:
        """Return the texts of the files with these names in the folder at `path`."""
        folder = self._paths.allowed(path) if path else None
        if folder is None:
            return {}
        if not folder.is_dir():
            _log.warning("the path %s is not a directory", path)
            return {}
        try:
            files = [folder / key for key in keys if "/" not in key and key not in (".", "..")]
            return {file.name: file.read_text("utf-8", "replace") for file in files if file.is_file()}
        except (OSError, ValueError) as e:
            reason = e.strerror if isinstance(e, OSError) else "no file name"
            raise ConfigError("directory", path, f"cannot be read: {reason}") from None
