"""Settings of workers, connectors and converters, declared once as typed classes."""

from connect.config.connector import (
    REFUSED,
    ConnectorConfig,
    SinkConfig,
    SourceConfig,
    refuse_unsupported,
    without_effect,
)
from connect.config.declaration import Config
from connect.config.files import read_config_file
from connect.config.setting import Password, setting
from connect.config.validation import document, unknown_keys, validate

__all__ = [
    "REFUSED",
    "Config",
    "ConnectorConfig",
    "Password",
    "SinkConfig",
    "SourceConfig",
    "document",
    "read_config_file",
    "refuse_unsupported",
    "setting",
    "unknown_keys",
    "validate",
    "without_effect",
]
