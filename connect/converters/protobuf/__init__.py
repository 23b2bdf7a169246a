"""ProtobufConverter: Protobuf with its schema in a schema registry, as Confluent's converter writes it."""

from connect.converters.protobuf.converter import ProtobufConverter, ProtobufConverterConfig

__all__ = ["ProtobufConverter", "ProtobufConverterConfig"]
