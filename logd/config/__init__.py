"""Settings of the broker and of topics, under Kafka's own keys.

Names are imported when first used: a program that only reads property files does not load the broker's table.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logd.config.broker import BROKER_SETTINGS, BrokerConfig
    from logd.config.listeners import Endpoint
    from logd.config.topic import TOPIC_SETTINGS, TopicConfig

__all__ = ["BROKER_SETTINGS", "TOPIC_SETTINGS", "BrokerConfig", "Endpoint", "TopicConfig"]

_HOMES = {
    "BROKER_SETTINGS": "broker",
    "BrokerConfig": "broker",
    "Endpoint": "listeners",
    "TOPIC_SETTINGS": "topic",
    "TopicConfig": "topic",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
