"""Addresses that servers listen on: the check of a setting, and who reaches them."""

from __future__ import annotations

import ipaddress
import re

from kafka_client.errors import ConfigError

_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9._-]+):([0-9]{1,5})")
PORT_MAX = 65_535


def is_address(text: str) -> bool:
    """Return True if the text is host:port; an IPv6 address is in brackets."""
    match = _ADDRESS.fullmatch(text)
    return match is not None and int(match[2]) <= PORT_MAX


def check_address(key: str, text: str) -> None:
    """Raise ConfigError if the value of a setting is not host:port."""
    if not is_address(text):
        raise ConfigError(key, text, "host:port, such as 127.0.0.1:7070")


def next_port(address: str, number: int) -> str:
    """Return the address with its port increased by ``number``; port 0, which is any free port, stays.

    Processes that share their settings so get listeners of their own.
    """
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + number}" if port not in ("", "0") else address


def is_loopback(host: str) -> bool:
    """Return True if a server that listens on this address or name can be reached from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
