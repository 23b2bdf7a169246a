"""Fixtures of all tests of `logd`."""

from tests.support.shared_logd import logd, new_name

__all__ = ["logd", "new_name"]
