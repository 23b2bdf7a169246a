"""AvroConverter: Avro with its schema in a schema registry, as Confluent's converter writes it."""

from connect.converters.avro.converter import AvroConverter, AvroConverterConfig

__all__ = ["AvroConverter", "AvroConverterConfig"]
