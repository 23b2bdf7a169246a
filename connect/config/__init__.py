"""Settings of workers, connectors and converters, declared once as typed classes."""

from connect.config.checks import at_least
from connect.config.connector import (
    REFUSED,
    ConnectorConfig,
    SinkConfig,
    SourceConfig,
    refuse_unsupported,
)
from connect.config.declaration import Config
from connect.config.errors import ErrorsConfig
from connect.config.files import read_config_file
from connect.config.setting import Password, setting
from connect.config.validation import definitions, document, error_text, unknown_keys, validate

__all__ = [
    "REFUSED",
    "Config",
    "ConnectorConfig",
    "ErrorsConfig",
    "Password",
    "SinkConfig",
    "SourceConfig",
    "at_least",
    "definitions",
    "document",
    "error_text",
    "read_config_file",
    "refuse_unsupported",
    "setting",
    "unknown_keys",
    "validate",
]
