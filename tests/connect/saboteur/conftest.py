"""The broker of the integration tests."""

from tests.connect.integration.conftest import logd

__all__ = ["logd"]
