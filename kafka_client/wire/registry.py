"""The message classes of an API by its number; each module is loaded at first use."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from kafka_client.wire.api_keys import PRIVATE_FROM, ApiKey
from kafka_client.wire.message import Message


def request_class(api_key: int) -> type[Message]:
    """Return the request class of an API; raises KeyError if it is not declared."""
    return _message_class(api_key, "Request")


def response_class(api_key: int) -> type[Message]:
    """Return the response class of an API; raises KeyError if it is not declared."""
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
    message_class: type[Message] = getattr(module, words + suffix)
    return message_class
