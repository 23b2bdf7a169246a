"""Schema registries: Confluent's REST API, the subjects of schemas, and the bytes before each value."""

from connect.converters.registry.client import Reference, RegisteredSchema, RegistryClient
from connect.converters.registry.converter import RegistryConverter, Target
from connect.converters.registry.coverage import check_covered
from connect.converters.registry.settings import RegistryConfig, subject_of
from connect.converters.registry.wire import framed, unframed

__all__ = [
    "Reference",
    "RegisteredSchema",
    "RegistryClient",
    "RegistryConfig",
    "RegistryConverter",
    "Target",
    "check_covered",
    "framed",
    "subject_of",
    "unframed",
]
