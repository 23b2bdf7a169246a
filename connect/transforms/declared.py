"""Transforms and predicates as a connector's config declares them, with their keys and definitions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from connect.api.transform import Predicate, Transform
from connect.config import Config, setting
from connect.config.checks import distinct
from connect.errors import ConfigError
from connect.transforms.registry import predicate_class, transform_class

Plugin = type[Transform] | type[Predicate]


class ChainConfig(Config):
    """The lists of a connector's transforms and predicates."""

    transforms: list[str] = setting(
        "Aliases of the transforms that records pass, in order.",
        default=[],
        importance="LOW",
        group="Transforms",
        check=distinct,
    )
    predicates: list[str] = setting(
        "Aliases of the predicates that transforms use.",
        default=[],
        importance="LOW",
        group="Predicates",
        check=distinct,
    )


class PredicateConfig(Config):
    """The settings that every predicate has."""

    type: str = setting("The class of the predicate.", importance="HIGH", kind="CLASS")
    plugin_version: str | None = setting(
        "The version of the predicate, `latest`, or a range such as `[1.0,2.0)` (KIP-891).",
        default=None,
        importance="MEDIUM",
    )


class TransformConfig(Config):
    """The settings that every transform has."""

    type: str = setting("The class of the transform.", importance="HIGH", kind="CLASS")
    plugin_version: str | None = setting(
        "The version of the transform, `latest`, or a range such as `[1.0,2.0)` (KIP-891).",
        default=None,
        importance="MEDIUM",
    )
    predicate: str | None = setting(
        "Alias of the predicate for which the transform applies; without it, to all records.", default=None
    )
    negate: bool = setting("Apply the transform where the predicate is false.", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A transform or predicate that a connector's config declares under an alias."""

    alias: str
    prefix: str
    """`transforms.<alias>.` or `predicates.<alias>.`."""
    common: TransformConfig | PredicateConfig
    plugin: Plugin | None
    """The class, or None if its name is not valid."""
    settings: Mapping[str, Any]
    """The plugin's own settings, without the prefix."""

    def configs(self) -> list[type[Config]]:
        """Return declarations of all keys of this alias, with the prefix."""
        own = [] if self.plugin is None else [self.plugin.CONFIG]
        return [prefixed(self.prefix, c, self.prefix.rstrip(".")) for c in (type(self.common), *own)]


def prefixed(prefix: str, config: type[Config], group: str) -> type[Config]:
    """Return a declaration with the same settings under `prefix`; its errors name the full keys."""
    settings = config.settings().values()
    specs = {s.attribute: dataclasses.replace(s.spec, key=prefix + s.key, group=group) for s in settings}

    def check(self: Config) -> None:
        with full_keys(prefix):
            config.check(self)

    return type(config.__name__, (config,), {"__doc__": config.__doc__, **specs, "check": check})


@contextmanager
def full_keys(prefix: str) -> Iterator[None]:
    """Add `prefix` to the key of a ConfigError that the body raises."""
    try:
        yield
    except ConfigError as e:
        raise ConfigError(prefix + e.key, e.value, e.allowed) from e


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredChain:
    """All transforms and predicates of a connector's config, with the errors in their settings."""

    transforms: Sequence[Declared]
    predicates: Mapping[str, Declared]
    errors: Sequence[ConfigError]

    def configs(self) -> list[type[Config]]:
        """Return declarations of all keys of the chain, for validation: Kafka's ConnectorConfig.enrich."""
        every = (*self.transforms, *self.predicates.values())
        return [ChainConfig, *(config for declared in every for config in declared.configs())]


def examine(config: Mapping[str, Any]) -> DeclaredChain:
    """Return what a connector's config declares. Loads the classes; creates none of their objects."""
    lists, errors = ChainConfig.examine(config)
    aliases: list[str] = getattr(lists, "transforms", [])
    tested: list[str] = getattr(lists, "predicates", [])
    transforms = [_declared(config, "transforms", a, TransformConfig, errors) for a in aliases]
    predicates = [_declared(config, "predicates", a, PredicateConfig, errors) for a in tested]
    for declared in transforms:
        errors.extend(_predicate_errors(declared, config, [p.alias for p in predicates]))
    return DeclaredChain(transforms=transforms, predicates={p.alias: p for p in predicates}, errors=errors)


def _declared(
    config: Mapping[str, Any],
    noun: str,
    alias: str,
    common_class: type[TransformConfig] | type[PredicateConfig],
    errors: list[ConfigError],
) -> Declared:
    """Return one alias's declaration; append the errors in its settings."""
    prefix = f"{noun}.{alias}."
    own = {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
    common, refused = common_class.examine(own)
    errors.extend(ConfigError(prefix + e.key, e.value, e.allowed) for e in refused)
    plugin: Plugin | None = None
    if common.type:
        find: Callable[[str, str, str | None], Plugin] = (
            transform_class if noun == "transforms" else predicate_class
        )
        try:
            plugin = find(f"{prefix}type", common.type, common.plugin_version)
        except ConfigError as e:
            errors.append(e)
    implicit = common_class.settings()
    settings = {key: value for key, value in own.items() if key not in implicit}
    if plugin is not None:
        _, refused = plugin.CONFIG.examine(settings)
        errors.extend(ConfigError(prefix + e.key, e.value, e.allowed) for e in refused)
    return Declared(alias=alias, prefix=prefix, common=common, plugin=plugin, settings=settings)


def _predicate_errors(
    declared: Declared, config: Mapping[str, Any], predicates: Sequence[str]
) -> Iterator[ConfigError]:
    """Yield errors of `predicate` and `negate`, as Kafka's ConnectorConfig raises them."""
    common = declared.common
    assert isinstance(common, TransformConfig)
    key = f"{declared.prefix}predicate"
    if common.predicate and common.predicate not in predicates:
        aliases = ", ".join(predicates) or "none"
        yield ConfigError(key, common.predicate, f"is no alias in `predicates`, which has {aliases}")
    negate = f"{declared.prefix}negate"
    if negate in config and not common.predicate:
        yield ConfigError(negate, config[negate], f"needs a predicate: set {key}, or remove {negate}")
