"""From an API's number to its message classes, each module loaded when first asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from kafka_client.wire.api_keys import PRIVATE_FROM, ApiKey
from kafka_client.wire.message import Message


def request_class(api_key: int) -> type[Message]:
    """The request of an API; KeyError if there is no declaration of it."""
    return _message_class(api_key, "Request")


def response_class(api_key: int) -> type[Message]:
    """The response of an API; KeyError if there is no declaration of it."""
    return _message_class(api_key, "Response")


@cache
def _message_class(api_key: int, suffix: str) -> type[Message]:
    try:
        name = ApiKey(api_key).name.lower()
        package = "messages" if api_key < PRIVATE_FROM else "private"
        module = import_module(f"kafka_client.wire.{package}.{name}")
    except (ValueError, ModuleNotFoundError):
        raise KeyError(api_key) from None
    words = "".join(word.capitalize() for word in name.split("_"))
    found: type[Message] = getattr(module, words + suffix)
    return found
