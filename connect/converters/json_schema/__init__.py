"""JsonSchemaConverter: JSON with its JSON Schema in a schema registry, as Confluent's converter writes it."""

from connect.converters.json_schema.converter import JsonSchemaConverter, JsonSchemaConverterConfig

__all__ = ["JsonSchemaConverter", "JsonSchemaConverterConfig"]
