"""ConfigProviders: the providers of a worker, which replace variables in configs.

    config.providers=file,env
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
    config.providers.file.param.allowed.paths=/etc/secrets

A connector's config keeps its variables wherever it is stored or shown. Their values are looked up at each
start of a connector or a task.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from connect.config.providers.data import ConfigData, ResolvedConfig
from connect.config.providers.environment import EnvVarConfigProvider
from connect.config.providers.files import DirectoryConfigProvider, FileConfigProvider
from connect.config.providers.provider import ConfigProvider
from connect.config.references import load
from connect.errors import ConnectError
from kafka_client.errors import ConfigError

_VARIABLE = re.compile(r"\$\{(?P<provider>[^}]*?):(?:(?P<path>[^}]*?):)?(?P<key>[^}]*?)\}")
_CLASSES: dict[str, type[ConfigProvider]] = {
    "FileConfigProvider": FileConfigProvider,
    "DirectoryConfigProvider": DirectoryConfigProvider,
    "EnvVarConfigProvider": EnvVarConfigProvider,
}
_KAFKAS = "org.apache.kafka.common.config.provider."


class _Variable(NamedTuple):
    provider: str
    path: str
    key: str


class _Value(NamedTuple):
    text: str | None
    ttl: int | None


class ConfigProviders:
    """Providers by their names in variables."""

    def __init__(self, providers: Mapping[str, ConfigProvider] | None = None) -> None:
        self._providers = dict(providers or {})

    @classmethod
    def configured(cls, worker: Mapping[str, Any]) -> ConfigProviders:
        """Create the providers that a worker's config names. Raises ConfigError for an invalid one."""
        names = worker.get("config.providers") or ""
        listed = names if isinstance(names, list) else str(names).split(",")
        return cls({name: _made(name, worker) for name in map(str.strip, listed) if name})

    def resolve(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the config with the values of its variables; those of no provider stay as they are.

        As in Kafka, a variable stays too if its provider does not have the key. Raises ConfigError, with the
        config's key and the variable, if a provider cannot be read.
        """
        return self.resolve_expiring(config).config

    def resolve_expiring(self, config: Mapping[str, Any]) -> ResolvedConfig:
        """Return what `resolve` returns, with the time until its first value expires."""
        resolved: dict[str, Any] = dict(config)
        looked_up: dict[_Variable, _Value] = {}
        for key, value in config.items():
            if isinstance(value, str) and "${" in value:
                resolved[key] = _VARIABLE.sub(partial(self._value, key, looked_up), value)
        ttls = [value.ttl for value in looked_up.values() if value.ttl is not None]
        return ResolvedConfig(resolved, min(ttls, default=None))

    def _value(self, key: str, looked_up: dict[_Variable, _Value], match: re.Match[str]) -> str:
        variable = _Variable(match["provider"], match["path"] or "", match["key"])
        provider = self._providers.get(variable.provider)
        if provider is None:
            return match[0]
        if variable not in looked_up:
            try:
                looked_up[variable] = _looked_up(provider, variable)
            except ConfigError as e:
                raise ConfigError(key, match[0], f"{e.value} {e.allowed}") from None
            except Exception as e:
                # The message of somebody's own provider may hold a secret.
                raise ConfigError(key, match[0], f"the provider failed: {type(e).__name__}") from None
        value = looked_up[variable].text
        return match[0] if value is None else value


def _looked_up(provider: ConfigProvider, variable: _Variable) -> _Value:
    values = provider.get(variable.path, {variable.key})
    if isinstance(values, ConfigData):
        return _Value(values.data.get(variable.key), values.ttl)
    return _Value(values.get(variable.key), None)


def _made(name: str, worker: Mapping[str, Any]) -> ConfigProvider:
    key = f"config.providers.{name}.class"
    class_name = str(worker.get(key) or "")
    if not class_name:
        raise ConfigError(key, "", "is required, since config.providers names it")
    prefix = f"config.providers.{name}.param."
    config = {k[len(prefix) :]: v for k, v in worker.items() if k.startswith(prefix)}
    try:
        provider = _class_named(key, class_name)(config)
    except ConfigError as e:
        raise e if e.key == key else ConfigError(prefix + e.key, e.value, e.allowed) from None
    except Exception as e:
        raise ConfigError(key, class_name, f"cannot be made: {e!r}") from e
    return provider


def _class_named(key: str, name: str) -> type[ConfigProvider]:
    provider: Any = _CLASSES.get(name.removeprefix(_KAFKAS))
    if provider is None:
        if ":" not in name and "." not in name:
            raise ConfigError(key, name, f"is no config provider; known are {', '.join(_CLASSES)}")
        try:
            provider = load(name)
        except ConnectError as e:
            raise ConfigError(key, name, str(e)) from e
    if not (isinstance(provider, type) and issubclass(provider, ConfigProvider)):
        raise ConfigError(key, name, "is not a config provider")
    return provider
