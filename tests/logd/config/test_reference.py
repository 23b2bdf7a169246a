from __future__ import annotations

from logd.config import BROKER_SETTINGS, TOPIC_SETTINGS
from logd.config.reference import markdown


def test_every_setting_has_its_line() -> None:
    lines = markdown().splitlines()
    for key in (*BROKER_SETTINGS, *TOPIC_SETTINGS):
        assert any(line.startswith(f"| `{key}` |") for line in lines)
