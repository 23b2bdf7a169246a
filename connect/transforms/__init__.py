"""Transforms and predicates: Kafka Connect's own, and the chain that applies a connector's."""

from connect.transforms.chain import TransformChain, TransformError
from connect.transforms.declared import examine
from connect.transforms.registry import PREDICATES, TRANSFORMS, predicate_class, transform_class

__all__ = [
    "PREDICATES",
    "TRANSFORMS",
    "TransformChain",
    "TransformError",
    "examine",
    "predicate_class",
    "transform_class",
]
