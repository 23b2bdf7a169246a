"""The rate limits of a connector: settings that take effect while its tasks run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect.config.declaration import Config
from connect.config.setting import setting

LIVE_KEYS = frozenset(
    (
        *("rate.limit.records.per.second", "rate.limit.bytes.per.second"),
        *("placement.pin", "placement.spread"),
    )
)
"""Settings of connectors that take effect at once; a change of only these restarts nothing."""


def _above_zero(value: float) -> None:
    if not 0 < value < float("inf"):
        raise ValueError("must be above 0; without the key there is no limit")


class RateLimitConfig(Config):
    """Settings that limit how fast a connector's tasks work; changed live."""

    rate_limit_records_per_second: float | None = setting(
        "Records per second of the whole connector: each of its tasks gets an equal share. A change takes "
        "effect without a restart.",
        default=None,
        importance="LOW",
        group="Rate limit",
        check=_above_zero,
    )
    rate_limit_bytes_per_second: float | None = setting(
        "Bytes of keys and values per second of the whole connector, shared and changed in the same way.",
        default=None,
        importance="LOW",
        group="Rate limit",
        check=_above_zero,
    )


def without_live_keys(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a connector's or task's config without the settings that need no restart."""
    if LIVE_KEYS.isdisjoint(config):
        return config
    return {key: value for key, value in config.items() if key not in LIVE_KEYS}
