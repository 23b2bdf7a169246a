"""The class Config: its attributes declare settings, and its instances are parsed configs."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from connect.config.setting import Setting, Spec
from connect.errors import InvalidConfig
from kafka_client.errors import ConfigError


class Config:
    """Subclass it and declare attributes with `setting(...)`; the class docstring heads the generated docs.

        class NumbersConfig(Config):
            '''Counts upwards.'''
            topic: str = setting("Where the numbers go.", importance="HIGH")
            limit: int = setting("Stop after this many; 0 never.", default=0)

        config = NumbersConfig.parse({"topic": "numbers"})

    Undeclared keys are ignored: they may be the worker's or a converter's.
    """

    PREFIXES: ClassVar[tuple[str, ...]] = ()
    """Prefixes of further keys the declaration's owner takes, or passes on."""
    _specs: ClassVar[dict[str, Spec]] = {}
    _settings: ClassVar[dict[str, Setting] | None] = None
    raw: Mapping[str, Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Spec)}
        for name in own:
            delattr(cls, name)
        inherited: dict[str, Spec] = {}
        for base in reversed(cls.__mro__[1:]):
            inherited.update(getattr(base, "_specs", {}))
        cls._specs = {**inherited, **own}
        cls._settings = None

    @classmethod
    def settings(cls) -> dict[str, Setting]:
        """Return the declared settings by key, in order of declaration."""
        if cls._settings is None:
            hints = typing.get_type_hints(cls)
            declared = (Setting.declared(name, hints.get(name), spec) for name, spec in cls._specs.items())
            cls._settings = {s.key: s for s in declared}
        return cls._settings

    @classmethod
    def examine(cls, raw: Mapping[str, Any]) -> tuple[Self, list[ConfigError]]:
        """Parse the config. Return the instance and an error for each invalid setting.

        The instance is complete only if there are no errors.
        """
        config, errors = cls(), []
        config.raw = dict(raw)
        for key, declared in cls.settings().items():
            value = raw.get(key)
            may_be_empty = declared.kind in ("STRING", "LIST") and not declared.required
            if value is None or (value == "" and not may_be_empty):
                if declared.required:
                    errors.append(ConfigError(key, "", "is required"))
                setattr(config, declared.attribute, None if declared.required else declared.spec.default)
                continue
            try:
                setattr(config, declared.attribute, declared.parse(value))
            except ValueError as e:
                errors.append(ConfigError(key, "[hidden]" if declared.kind == "PASSWORD" else value, str(e)))
        errors.extend(config._disagreements(errors))
        return config, errors

    def _disagreements(self, errors: list[ConfigError]) -> list[ConfigError]:
        """Return the errors of `check`. Before it, invalid settings take their defaults, if they have one."""
        for error in errors:
            declared = self.settings()[error.key]
            if declared.required:
                return []
            setattr(self, declared.attribute, declared.spec.default)
        try:
            self.check()
        except ConfigError as e:
            disagreeing = e.errors if isinstance(e, InvalidConfig) else (e,)
            return [each for each in disagreeing if all(each.key != error.key for error in errors)]
        return []

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Self:
        """Return the parsed config. Raises the first ConfigError if a setting is invalid."""
        config, errors = cls.examine(raw)
        if errors:
            raise errors[0]
        return config

    def check(self) -> None:
        """Override it for settings that must agree with each other.

        Raise ConfigError, or InvalidConfig for several keys.
        """

    def __repr__(self) -> str:
        shown = ", ".join(f"{s.key}={getattr(self, s.attribute)!r}" for s in type(self).settings().values())
        return f"{type(self).__name__}({shown})"
