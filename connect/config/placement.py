"""The wishes of a connector for the places of its tasks in a group of workers."""

from __future__ import annotations

from connect.config.checks import at_least
from connect.config.declaration import Config
from connect.config.setting import setting


class PlacementConfig(Config):
    """Settings of where a connector's tasks run, in a group with `placement=load`."""

    placement_pin: list[str] = setting(
        "Where the tasks may run: patterns such as `host1:*` or `zone=a`. A worker's address, host or one of "
        "its `placement.labels` has to match one of them; empty: anywhere.",
        default=[],
        importance="LOW",
        group="Placement",
    )
    placement_spread: int | None = setting(
        "How many of the connector's tasks one worker may have.",
        default=None,
        importance="LOW",
        group="Placement",
        check=at_least(1),
    )
