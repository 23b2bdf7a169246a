from __future__ import annotations

import inspect
import subprocess
import sys

import kafka_client


def test_everything_exported_is_there_and_documented() -> None:
    assert len(kafka_client.__all__) == len(set(kafka_client.__all__))
    for name in kafka_client.__all__:
        exported = getattr(kafka_client, name)
        if inspect.isclass(exported):
            assert exported.__doc__, name
            for member, function in inspect.getmembers(exported, inspect.isfunction):
                if not member.startswith("_") and function.__module__.startswith("kafka_client"):
                    assert function.__doc__, f"{name}.{member}"


def test_a_client_is_had_without_producers_and_consumers() -> None:
    script = (
        "import sys; from kafka_client import Admin, Client\n"
        "heavy = {'kafka_client.producer.producer', 'kafka_client.group.consumer', 'kafka_client.records'}\n"
        "heavy.add('http.client')\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
