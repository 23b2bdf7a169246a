"""DropHeaders and InsertHeader."""

from __future__ import annotations

from connect.api.transform import R
from connect.config import Config, setting
from connect.transforms.fields import distinct
from connect.transforms.literals import parse_literal
from connect.transforms.parts import Configured


class DropHeadersConfig(Config):
    """Removes headers."""

    headers: list[str] = setting("Names of the headers to remove.", importance="HIGH", check=distinct)


class DropHeaders(Configured[DropHeadersConfig]):
    """The transform DropHeaders."""

    CONFIG = DropHeadersConfig

    def prepare(self) -> None:
        """Make a set of the names."""
        self._names = frozenset(self.config.headers)

    def change(self, record: R) -> R:
        """Remove the headers of these names, and return the record."""
        record.headers = [header for header in record.headers if header[0] not in self._names]
        return record


class InsertHeaderConfig(Config):
    """Adds a header."""

    header: str = setting("The header's name.", importance="HIGH")
    value_literal: str = setting(
        "The header's value. Its type is inferred: 1 is an int8, true a boolean, [1, 2] an array.",
        importance="HIGH",
    )


class InsertHeader(Configured[InsertHeaderConfig]):
    """The transform InsertHeader."""

    CONFIG = InsertHeaderConfig

    def prepare(self) -> None:
        """Parse the value, once for all records."""
        self._header = (self.config.header, *parse_literal(self.config.value_literal))

    def change(self, record: R) -> R:
        """Add the header behind the other headers, and return the record."""
        record.headers = [*record.headers, self._header]
        return record
