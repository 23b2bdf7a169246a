"""Settings of the Protobuf converter, by Confluent's keys."""

from __future__ import annotations

from connect.config import setting
from connect.converters.protobuf.names import Options
from connect.converters.registry import RegistryConfig


class ProtobufConverterConfig(RegistryConfig):
    """Settings of the Protobuf converter."""

    enhanced_protobuf_schema_support: bool = setting(
        "Whether names of structs and enums have their package.", default=False
    )
    generalized_sum_type_support: bool = setting(
        "Whether oneofs and enums get Connect's general parameters instead of Protobuf's.",
        default=False,
        importance="LOW",
    )
    scrub_invalid_names: bool = setting(
        "Whether characters that names in Protobuf cannot have become `_`.", default=False
    )
    int_for_enums: bool = setting("Whether enums are read as numbers, not as names.", default=False)
    optional_for_nullables: bool = setting(
        "Whether optional fields are written as `optional`, which keeps nulls.", default=False
    )
    optional_for_proto2: bool = setting(
        "Whether `optional` fields of proto2 that are not set are nulls.", default=True
    )
    wrapper_for_nullables: bool = setting(
        "Whether optional fields are written as wrapper messages, which keeps nulls.", default=False
    )
    wrapper_for_raw_primitives: bool = setting(
        "Whether wrapper messages are read as plain values, if nothing is around them.", default=True
    )

    @property
    def options(self) -> Options:
        """The settings that decide about schemas."""
        return Options(
            enhanced_schemas=self.enhanced_protobuf_schema_support,
            generalized_sum_types=self.generalized_sum_type_support,
            scrub_invalid_names=self.scrub_invalid_names,
            int_for_enums=self.int_for_enums,
            optional_for_nullables=self.optional_for_nullables,
            optional_for_proto2=self.optional_for_proto2,
            wrapper_for_nullables=self.wrapper_for_nullables,
            wrapper_for_raw_primitives=self.wrapper_for_raw_primitives,
        )
