"""Filter: leaves records out."""

from __future__ import annotations

from connect.api.transform import R
from connect.config import Config
from connect.transforms.parts import Configured


class FilterConfig(Config):
    """Leaves out all records; use it with a predicate."""


class Filter(Configured[FilterConfig]):
    """The transform Filter."""

    CONFIG = FilterConfig

    def change(self, record: R) -> None:
        """Return None, so that the record is left out."""
