"""Base classes of converters. The worker converts batches, but converting single values is enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from connect.api.schema import Schema
from connect.config import Config

if TYPE_CHECKING:
    import pyarrow as pa


class SchemaAndValue(NamedTuple):
    """A value with its schema, None if it has none."""

    schema: Schema | None
    value: Any


class Converter:
    """A converter between Connect values and bytes.

    Raises DataError for values or bytes it cannot convert.
    """

    CONFIG: ClassVar[type[Config] | None] = None
    """The declaration of the converter's settings, or None. Undeclared keys get a warning."""
    VERSION: ClassVar[str] = "0"

    def __init__(self, config: Mapping[str, Any], *, is_key: bool) -> None:
        """Create a converter. `config` has its settings without the `key.converter.` prefix."""
        self.is_key = is_key

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes for the log; None is a null."""
        raise NotImplementedError

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """Return the value that the bytes encode."""
        raise NotImplementedError

    def from_connect_many(
        self, topic: str, schema: Schema | None, values: Sequence[Any]
    ) -> list[bytes | None]:
        """Convert values that share a topic and a schema; override this if a batch is cheaper."""
        return [self.from_connect(topic, schema, value) for value in values]

    def to_connect_many(
        self, topic: str, datas: Sequence[bytes | None]
    ) -> Sequence[tuple[Schema | None, Any]]:
        """Return pairs of schema and value for a batch; override this if a batch is cheaper."""
        return [self.to_connect(topic, data) for data in datas]

    def to_arrow(self, topic: str, datas: pa.Array) -> pa.Array | None:
        """Return the values of binary `datas` as an Arrow array, null for null; None if single values have to
        be converted.

        Sinks of columns use it. It has to agree with `to_connect`.
        """
        return None

    def to_json(self, topic: str, datas: Sequence[bytes | None]) -> list[bytes | None] | None:
        """Return values as JSON texts without line ends, None for null; None if values have to be converted.

        Sinks of JSON use it. It has to agree with `to_connect`.
        """
        return None


class HeaderConverter:
    """A converter between header values and bytes."""

    VERSION: ClassVar[str] = "0"

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Create a converter. `config` has the settings under `header.converter.`."""

    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes for the log."""
        raise NotImplementedError

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> SchemaAndValue:
        """Return the value that the bytes encode."""
        raise NotImplementedError
