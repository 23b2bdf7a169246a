"""The form of `max.connections.per.ip.overrides`: limits of single addresses."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping

from logd.config.setting import INT_MAX, Allowed


def plain_address(host: str) -> str:
    """Return an address as it is counted: without its interface, and an IPv4 address in its short form."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def limits_by_address(texts: Iterable[str]) -> Mapping[str, int]:
    """Return the limits in texts such as `10.0.0.1:100`. Raises ValueError."""
    limits = {}
    for text in texts:
        host, colon, number = text.rpartition(":")
        address = plain_address(str(ipaddress.ip_address(host.strip().strip("[]"))))
        if not colon or not number.isdecimal() or int(number) > INT_MAX:
            raise ValueError(text)
        limits[address] = int(number)
    return limits


def _are_limits(texts: Iterable[str]) -> bool:
    try:
        limits_by_address(texts)
    except ValueError:
        return False
    return True


ADDRESS_LIMITS = Allowed(
    check=_are_limits, text="ADDRESS:NUMBER, such as 10.0.0.1:100 or [::1]:5; host names are not looked up"
)
