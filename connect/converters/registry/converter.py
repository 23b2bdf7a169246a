"""RegistryConverter: the part that converters with a schema registry share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

from connect.api.schema import Schema, Type
from connect.converters.base import Converter
from connect.converters.registry.client import Kind, RegisteredSchema, RegistryClient
from connect.converters.registry.settings import RegistryConfig, subject_of
from connect.errors import DataError

C = TypeVar("C", bound=RegistryConfig)
W = TypeVar("W")


class RegistryConverter(Converter, Generic[C, W]):
    """A converter whose schemas are in a registry. `W` holds how values of one schema are written."""

    KIND: ClassVar[Kind]

    def __init__(
        self, config: Mapping[str, Any], settings: C, *, is_key: bool, registry: RegistryClient | None
    ) -> None:
        super().__init__(config, is_key=is_key)
        self._config = settings
        self._registry = registry or RegistryClient(settings)
        self._writers: dict[tuple[str, int], tuple[Schema, W]] = {}

    def _make_writer(self, topic: str, schema: Schema) -> W:
        raise NotImplementedError

    def _writer(self, topic: str, schema: Schema) -> W:
        """Return the schema's writer for a topic, cached by the schema's identity."""
        cached = self._writers.get((topic, id(schema)))
        if cached is not None and cached[0] is schema:
            return cached[1]
        writer = self._make_writer(topic, schema)
        if len(self._writers) >= self._config.schemas_cache_config:
            self._writers.clear()
        self._writers[topic, id(schema)] = (schema, writer)
        return writer

    def _registered(self, topic: str, schema: Schema, text: str) -> tuple[int, str]:
        """Return the id and text of the schema to write by: the value's own, or the subject's latest."""
        config, registry = self._config, self._registry
        strategy = config.key_subject_name_strategy if self.is_key else config.value_subject_name_strategy
        record_name = schema.name if schema.type is Type.STRUCT else None
        subject = subject_of(strategy, topic, is_key=self.is_key, record_name=record_name)
        if config.use_latest_version:
            latest = registry.version(subject, "latest")
            return latest.id, self._text(latest)
        register = registry.register if config.auto_register_schemas else registry.id_of
        return register(subject, self.KIND, text), text

    def _text(self, registered: RegisteredSchema) -> str:
        """Return the text of a schema. Raises DataError if it is of another kind."""
        if registered.kind != self.KIND:
            raise DataError(f"schema {registered.id} is one of {registered.kind}, not of {self.KIND}")
        return registered.text
