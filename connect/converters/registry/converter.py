"""RegistryConverter: the part that converters with a schema registry share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from connect.api.schema import Schema, Type
from connect.converters.base import Converter
from connect.converters.registry.client import Kind, RegisteredSchema, RegistryClient
from connect.converters.registry.settings import RegistryConfig, subject_of
from connect.errors import DataError

C = TypeVar("C", bound=RegistryConfig)
W = TypeVar("W")


class Target(NamedTuple):
    """The schema in the registry by which values are written."""

    id: int
    registered: RegisteredSchema | None
    """The schema, if it is not the value's own."""
    strict: bool = True
    """False if fields that the schema lacks are left out; else they are DataErrors."""


class RegistryConverter(Converter, ABC, Generic[C, W]):
    """A converter whose schemas are in a registry. `W` holds how values of one schema are written."""

    KIND: ClassVar[Kind]

    def __init__(
        self, config: Mapping[str, Any], settings: C, *, is_key: bool, registry: RegistryClient | None
    ) -> None:
        super().__init__(config, is_key=is_key)
        self._config = settings
        self._registry = registry or RegistryClient(settings)
        self._schemas_max = min(settings.schemas_cache_config, settings.max_schemas_per_subject)
        self._writers: dict[tuple[str, int], tuple[Schema, W]] = {}

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the schema's id and the value in the schema's encoding; a null is a null record.

        Raises DataError for a value or schema that is refused, RetriableError if no registry answers.
        """
        if value is None and (schema is None or schema.default is None):
            if schema is not None:
                schema.check(value)
            return None
        if schema is None:
            schema = self._inferred(topic, value)
        schema.check(value)
        return self._written(self._writer(topic, schema), topic, value)

    @abstractmethod
    def _inferred(self, topic: str, value: Any) -> Schema:
        """Return the schema of a value that has none. Raises DataError if there is none for its type."""

    @abstractmethod
    def _make_writer(self, topic: str, schema: Schema) -> W:
        """Return what writes values of a schema; the schema is in the registry then."""

    @abstractmethod
    def _written(self, writer: W, topic: str, value: Any) -> bytes:
        """Return a value behind its schema's id. Raises DataError if it does not fit."""

    def _writer(self, topic: str, schema: Schema) -> W:
        """Return the schema's writer for a topic, cached by the schema's identity."""
        cached = self._writers.get((topic, id(schema)))
        if cached is not None and cached[0] is schema:
            return cached[1]
        writer = self._make_writer(topic, schema)
        if len(self._writers) >= self._schemas_max:
            self._writers.clear()
        self._writers[topic, id(schema)] = (schema, writer)
        return writer

    def _target(self, topic: str, schema: Schema, text: str) -> Target:
        """Return the schema to write by: the value's own, the subject's latest, or the one of an id."""
        config, registry = self._config, self._registry
        strategy = config.key_subject_name_strategy if self.is_key else config.value_subject_name_strategy
        record_name = schema.name if schema.type is Type.STRUCT else None
        if config.use_schema_id >= 0:
            registered = registry.by_id(config.use_schema_id)
            return Target(registered.id, registered, strict=config.id_compatibility_strict)
        subject = subject_of(strategy, topic, is_key=self.is_key, record_name=record_name)
        if config.use_latest_version:
            latest = registry.version(subject, "latest")
            return Target(latest.id, latest, strict=config.latest_compatibility_strict)
        register = registry.register if config.auto_register_schemas else registry.id_of
        return Target(register(subject, self.KIND, text), None)

    def _text(self, registered: RegisteredSchema) -> str:
        """Return the text of a schema. Raises DataError if it is of another kind."""
        if registered.kind != self.KIND:
            raise DataError(f"schema {registered.id} is one of {registered.kind}, not of {self.KIND}")
        return registered.text
