"""Config providers: values of variables such as `${file:/path:key}` in configs (KIP-297, 421, 887, 993)."""

from connect.config.providers.data import ConfigData, ResolvedConfig
from connect.config.providers.environment import EnvVarConfigProvider
from connect.config.providers.files import DirectoryConfigProvider, FileConfigProvider
from connect.config.providers.provider import ConfigProvider
from connect.config.providers.providers import ConfigProviders
from connect.config.providers.secrets import hidden, hidden_report, restored

__all__ = [
    "ConfigData",
    "ConfigProvider",
    "ConfigProviders",
    "DirectoryConfigProvider",
    "EnvVarConfigProvider",
    "FileConfigProvider",
    "ResolvedConfig",
    "hidden",
    "hidden_report",
    "restored",
]
