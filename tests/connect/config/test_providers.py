"""Config providers, against what Kafka's ConfigTransformer makes of the same variables."""

from __future__ import annotations

import os
from collections.abc import Set

import pytest

from connect.config.providers import (
    ConfigData,
    ConfigProvider,
    ConfigProviders,
    DirectoryConfigProvider,
    EnvVarConfigProvider,
    FileConfigProvider,
    hidden,
    restored,
)
from connect.errors import ConfigError
from connect.runtime import WorkerConfig
from tests.support.java import needs_javac, run_program

KAFKAS = "org.apache.kafka.common.config.provider"
FILE = {"config.providers": "file", "config.providers.file.class": f"{KAFKAS}.FileConfigProvider"}

EXPECTED = {
    "${file:D/s.properties:k}": "secret",
    "a${file:D/s.properties:k}b${file:D/s.properties:k}": "asecretbsecret",
    "${file:D/s.properties:none}": "${file:D/s.properties:none}",
    "${file:D/s.properties:empty}": "",
    "${file:D/s.properties:umlaut}": "ü",
    "${file:D/s.properties:nested}": "${env:HOME}",
    "${file:D/s.properties:a:b}": "${file:D/s.properties:a:b}",
    "${file:D/nope:k}": "ConfigException",
    "${file:D:k}": "ConfigException",
    "${file:k}": "${file:k}",
    "${file::k}": "${file::k}",
    "${file-below:D/s.properties:k}": "${file-below:D/s.properties:k}",
    "${file-below:D/sub/../s.properties:k}": "${file-below:D/sub/../s.properties:k}",
    "${file-below:D/sub/t.properties:k}": "below",
    "${dir:D:password}": "top|",
    "${dir:D:.hidden}": "hid",
    "${dir:D:sub}": "${dir:D:sub}",
    "${dir:D:sub/password}": "${dir:D:sub/password}",
    "${dir:D:../x}": "${dir:D:../x}",
    "${dir:D/nope:password}": "${dir:D/nope:password}",
    "${dir:password}": "${dir:password}",
    "${dir-below:D:password}": "${dir-below:D:password}",
    "${dir-below:D/sub:password}": "deep",
    "${env:HOME}": "/home/of/us",
    "${env:NONE_OF_THIS}": "${env:NONE_OF_THIS}",
    "x${env:NONE_OF_THIS}${env:HOME}": "x${env:NONE_OF_THIS}/home/of/us",
    "${env:path:HOME}": "ConfigException",
    "${env:}": "${env:}",
    "${env-some:HOME}": "${env-some:HOME}",
    "${env-home:HOME}": "/home/of/us",
    "${env-home:PATH}": "${env-home:PATH}",
    "${nope:HOME}": "${nope:HOME}",
    "${nope:a:b} ${env:HOME}": "${nope:a:b} /home/of/us",
    "${nope:${env:HOME}": "${nope:${env:HOME}",
    "$${env:HOME}": "$/home/of/us",
    "${env:HO${env:HOME}ME}": "ConfigException",
    "${HOME}": "${HOME}",
    "${}": "${}",
    "${env:HOME": "${env:HOME",
    "plain": "plain",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "s.properties").write_text("k=secret\nempty=\numlaut=ü\nnested=${env:HOME}\n", "utf-8")
    (tmp_path / "password").write_text("top\n")
    (tmp_path / ".hidden").write_text("hid")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "password").write_text("deep")
    (tmp_path / "sub" / "t.properties").write_text("k=below")
    monkeypatch.setenv("HOME", "/home/of/us")
    return tmp_path


def resolved(providers: ConfigProviders, folder, value: str) -> str:
    try:
        value_now = providers.resolve({"key": value.replace("D", str(folder))})["key"]
    except ConfigError:
        return "ConfigException"
    return value_now.replace(str(folder), "D").replace("\n", "|")


def test_variables(folder):
    below = {"allowed.paths": f"{folder}/sub"}
    providers = ConfigProviders(
        {
            "file": FileConfigProvider({}),
            "dir": DirectoryConfigProvider({}),
            "env": EnvVarConfigProvider({}),
            "file-below": FileConfigProvider(below),
            "dir-below": DirectoryConfigProvider(below),
            "env-some": EnvVarConfigProvider({"allowlist.pattern": "HO"}),
            "env-home": EnvVarConfigProvider({"allowlist.pattern": "HO.E"}),
        }
    )
    assert {value: resolved(providers, folder, value) for value in EXPECTED} == EXPECTED


@needs_javac
def test_kafka_makes_the_same_of_them(folder):
    printed = run_program("ConfigVariables", str(folder), stdin="\n".join(EXPECTED)).splitlines()
    assert dict(zip(EXPECTED, printed, strict=True)) == EXPECTED


def test_a_link_that_leads_out_of_the_allowed_paths_is_not_followed(folder):
    (folder / "sub" / "link").symlink_to(folder / "s.properties")
    provider = FileConfigProvider({"allowed.paths": f"{folder}/sub"})
    assert provider.get(f"{folder}/sub/link", {"k"}) == {}


def test_providers_of_a_worker(folder):
    worker = FILE | {"config.providers.file.param.allowed.paths": str(folder / "sub")}
    providers = ConfigProviders.configured(worker)
    config = {
        "a": f"${{file:{folder}/s.properties:k}}",
        "b": f"${{file:{folder}/sub/t.properties:k}}",
        "c": 1,
    }
    assert providers.resolve(config) == {"a": config["a"], "b": "below", "c": 1}
    assert ConfigProviders.configured({}).resolve(config) == config


@pytest.mark.parametrize(
    ("worker", "words"),
    [
        ({"config.providers": "file"}, r"config\.providers\.file\.class=: is required"),
        (FILE | {"config.providers.file.class": "Nope"}, "known are FileConfigProvider"),
        (FILE | {"config.providers.file.class": "connect.api:Config"}, "not a config provider"),
        (FILE | {"config.providers.file.class": "no.such:Thing"}, r"file\.class=no\.such:Thing"),
        (
            FILE | {"config.providers.file.param.allowed.paths": "rel"},
            r"allowed\.paths=rel: must be absolute",
        ),
        (FILE | {"config.providers.file.param.allowed.paths": "/no/such"}, "does not exist"),
        (
            {
                "config.providers": "e",
                "config.providers.e.class": "EnvVarConfigProvider",
                "config.providers.e.param.allowlist.pattern": "(",
            },
            r"providers\.e\.param\.allowlist\.pattern=\(: is no regular expression",
        ),
    ],
)
def test_a_provider_that_cannot_be_used_is_named_with_its_key(worker, words):
    with pytest.raises(ConfigError, match=words.replace("must be absolute", "must be an absolute path")):
        ConfigProviders.configured(worker)


class Broken(ConfigProvider):
    def get(self, path, keys):
        raise OSError("the secret is abc")


def test_an_error_names_the_key_and_the_variable_but_no_value():
    with pytest.raises(ConfigError) as caught:
        ConfigProviders({"own": Broken({})}).resolve({"password": "${own:p:k}"})
    assert str(caught.value) == "password=${own:p:k}: the provider failed: OSError"


def test_a_file_is_read_again_at_each_start(folder):
    providers = ConfigProviders.configured(FILE)
    config = {"a": f"${{file:{folder}/s.properties:k}}"}
    assert providers.resolve(config) == {"a": "secret"}
    (folder / "s.properties").write_text("k=newer")
    assert providers.resolve(config) == {"a": "newer"}


def test_planned_tasks_get_their_variables_back():
    config = {"password": "${file:f:k}", "tables": "${file:f:t}", "plain": "x"}
    values = {"password": "secret", "tables": "a,b", "plain": "x"}
    planned = [{"password": "secret", "tables": "a", "plain": "y", "task": "0"}]
    assert restored(config, values, planned) == [
        {"password": "${file:f:k}", "tables": "a", "plain": "y", "task": "0"}
    ]


def test_an_error_about_a_resolved_config_shows_the_variable():
    error = ConfigError("port", "secret", "'secret' is no number")
    shown = hidden({"port": "${file:f:k}"}, {"port": "secret"}, error)
    assert str(shown) == "port=${file:f:k}: '${file:f:k}' is no number"
    assert hidden({"port": "x"}, {"port": "x"}, error) is error


def test_an_environment_variable_is_not_read_from_a_copy(monkeypatch):
    provider = EnvVarConfigProvider({})
    monkeypatch.setitem(os.environ, "NEWLY_SET", "1")
    assert provider.get("", {"NEWLY_SET"}) == {"NEWLY_SET": "1"}


def test_a_workers_own_config_has_the_values(monkeypatch, tmp_path):
    monkeypatch.setenv("BROKERS", "one:9092,two:9092")
    monkeypatch.setenv("FLUSH", "opensesame")
    env = {"config.providers": "env", "config.providers.env.class": f"{KAFKAS}.EnvVarConfigProvider"}
    worker = WorkerConfig.parse({"bootstrap.servers": "${env:BROKERS}", **env})
    assert worker.bootstrap_servers == ["one:9092", "two:9092"]
    with pytest.raises(ConfigError) as caught:
        WorkerConfig.parse({"offset.flush.interval.ms": "${env:FLUSH}", **env})
    assert str(caught.value) == "offset.flush.interval.ms=${env:FLUSH}: must be a whole number"


class Lease(ConfigProvider):
    """Values that expire after as many milliseconds as their path says."""

    def get(self, path: str, keys: Set[str]) -> ConfigData:
        return ConfigData(dict.fromkeys(keys, "v"), int(path) if path else None)


def test_a_config_is_valid_until_its_first_value_expires():
    providers = ConfigProviders({"l": Lease({})})
    assert providers.resolve_expiring({"a": "${l:k}", "b": "b"}).ttl is None
    resolved = providers.resolve_expiring({"a": "${l:30:k}", "b": "${l:20:k} ${l:k}", "c": "${l:40:k}"})
    assert resolved.config == {"a": "v", "b": "v v", "c": "v"}
    assert resolved.ttl == 20
    with pytest.raises(ConfigError, match="the provider failed: ValueError"):
        providers.resolve({"a": "${l:-1:k}"})
