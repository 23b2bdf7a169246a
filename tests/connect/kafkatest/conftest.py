"""The broker of the integration tests, for scenarios of Kafka's system tests."""

from tests.connect.integration.conftest import kit, logd, topic

__all__ = ["kit", "logd", "topic"]
