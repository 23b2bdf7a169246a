from __future__ import annotations

import inspect
import subprocess
import sys

import logd.client


def test_everything_exported_is_there_and_documented() -> None:
    assert len(logd.client.__all__) == len(set(logd.client.__all__))
    for name in logd.client.__all__:
        exported = getattr(logd.client, name)
        if inspect.isclass(exported):
            assert exported.__doc__, name
            for member, function in inspect.getmembers(exported, inspect.isfunction):
                if not member.startswith("_") and function.__module__.startswith("logd.client"):
                    assert function.__doc__, f"{name}.{member}"


def test_a_client_is_had_without_producers_and_consumers() -> None:
    script = (
        "import sys; from logd.client import Admin, Client\n"
        "heavy = {'logd.client.producer.producer', 'logd.client.group.consumer', 'logd.records'}\n"
        "heavy.add('http.client')\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
