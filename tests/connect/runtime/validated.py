"""A sink connector and converters that a worker refuses in several ways."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from connect.api import Config, SinkConnector, SinkTask, setting
from connect.converters import Converter


class IdleTask(SinkTask):
    def put(self, records: object) -> None:
        pass


class ValidatedSink(SinkConnector):
    """A sink without settings."""

    CONFIG = Config
    VERSION = "1"
    task_class = IdleTask


class Plain(Converter):
    """A converter that declares no settings."""


class Abstract(Plain, ABC):
    """A converter that nobody can create."""

    @abstractmethod
    def more(self) -> None: ...


class Argued(Plain):
    """A converter whose constructor needs another argument."""

    def __init__(self, config: Mapping[str, Any], argument: str, *, is_key: bool) -> None:
        pass


class Raising(Plain):
    """A converter whose constructor raises an error."""

    def __init__(self, config: Mapping[str, Any], *, is_key: bool) -> None:
        raise ValueError("no luck")


class DeclaringConfig(Config):
    """A converter's own settings."""

    prop: bool = setting("A setting.", importance="HIGH")


class Declaring(Plain):
    """A converter with a setting of its own."""

    CONFIG = DeclaringConfig

    def __init__(self, config: Mapping[str, Any], *, is_key: bool) -> None:
        DeclaringConfig.parse(config)
