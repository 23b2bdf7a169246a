"""Settings of the broker and of topics, under Kafka's own keys."""

from logd.config.broker import BROKER_SETTINGS, BrokerConfig
from logd.config.listeners import Endpoint
from logd.config.topic import TOPIC_SETTINGS, TopicConfig

__all__ = ["BROKER_SETTINGS", "TOPIC_SETTINGS", "BrokerConfig", "Endpoint", "TopicConfig"]
