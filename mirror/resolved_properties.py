"""Properties whose variables (`${file:/etc/secrets:password}`) are resolved when a value is read (KIP-297).

A variable in a key that nobody reads is not looked up, so its provider may be away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from connect.config.providers.providers import ConfigProviders


class ResolvedProperties(Mapping[str, str]):
    """`properties` with the values of their variables, by the providers in `config.providers`."""

    def __init__(self, properties: Mapping[str, str], providers: ConfigProviders) -> None:
        self._properties = properties
        self._providers = providers

    @classmethod
    def by_own_providers(cls, properties: Mapping[str, str]) -> ResolvedProperties:
        """Return the properties with the providers they configure. Raises ConfigError for an invalid one."""
        return cls(properties, ConfigProviders.configured(properties))

    def overlaid(self, prefix: str) -> ResolvedProperties:
        """Return the keys under `prefix`, without it, before those of the same name without a prefix.

        Keys of flows (`a->b.key`) are left out.
        """
        common = {key: value for key, value in self._properties.items() if "->" not in key}
        own = {key[len(prefix) :]: value for key, value in self._properties.items() if key.startswith(prefix)}
        return ResolvedProperties(common | own, self._providers)

    def with_value(self, key: str, value: str) -> ResolvedProperties:
        """Return these properties with another value of `key`."""
        return ResolvedProperties({**self._properties, key: value}, self._providers)

    def __getitem__(self, key: str) -> str:
        """Return the value. Raises KeyError, and ConfigError if a provider cannot be read."""
        resolved: str = self._providers.resolve({key: self._properties[key]})[key]
        return resolved

    def __contains__(self, key: object) -> bool:
        """Return True if the key is set, whether or not its value can be resolved."""
        return key in self._properties

    def __iter__(self) -> Iterator[str]:
        """Yield the keys."""
        return iter(self._properties)

    def __len__(self) -> int:
        """Return how many keys there are."""
        return len(self._properties)
