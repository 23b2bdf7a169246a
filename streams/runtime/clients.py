"""The clients through which an instance talks to the cluster."""

from __future__ import annotations

from dataclasses import dataclass

from kafka_client import Client, GroupMember


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """An instance's connection to the cluster, and its membership in the application's group."""

    client: Client
    member: GroupMember
