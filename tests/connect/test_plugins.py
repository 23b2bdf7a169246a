"""Finding connectors by entry point, by Kafka's class name, by module and class."""

import functools
from importlib.metadata import EntryPoint

import pytest

from connect.errors import ConnectError, NotFound
from connect.runtime import connector_class, list_plugins, plugins
from plugins.files import FilesSource, FileStreamSource

NAMES = {
    "FilesSource": "plugins.files:FilesSource",
    "org.apache.kafka.connect.file.FileStreamSourceConnector": "plugins.files:FileStreamSource",
    "broken": "plugins.files:Nothing",
}


@pytest.fixture
def registered(monkeypatch):
    points = {name: EntryPoint(name, target, plugins.GROUP) for name, target in NAMES.items()}
    monkeypatch.setattr(plugins, "_registered", functools.cache(lambda: points))
    return points


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("FilesSource", FilesSource),
        ("FilesSourceConnector", FilesSource),
        ("org.apache.kafka.connect.file.FileStreamSourceConnector", FileStreamSource),
        ("FileStreamSourceConnector", FileStreamSource),
        ("FileStreamSource", FileStreamSource),
        ("plugins.files:FilesSource", FilesSource),
        ("plugins.files.FilesSource", FilesSource),
    ],
)
def test_names(registered, name, expected):
    assert connector_class(name) is expected


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("FileSource", "there are FilesSource"),
        ("plugins.files:FilesSourceConfig", "cannot be loaded"),
        ("plugins.files.config:FilesSourceConfig", "not a connector"),
        ("no.such.module:Thing", "cannot be loaded"),
        ("broken", "cannot be loaded"),
        ("module:", "names no class"),
    ],
)
def test_what_cannot_be_found(registered, name, says):
    with pytest.raises((NotFound, ConnectError), match=says):
        connector_class(name)


def test_the_list_of_plugins(registered):
    listed = {plugin["class"]: plugin for plugin in list_plugins()}
    assert listed["FilesSource"] == {
        "class": "FilesSource", "type": "source", "version": "1", "location": "installed",
    }  # fmt: skip
    assert "cannot be loaded" in listed["broken"]["error"]  # and does not hide the others


@pytest.mark.parametrize(("text", "words"), [("def x(:\n", "SyntaxError"), ("\nmissing()\n", "line 2")])
def test_a_module_that_fails_is_told_with_its_error(tmp_path, monkeypatch, text, words):
    monkeypatch.syspath_prepend(tmp_path)
    name = f"failing_{words[:4].lower()}"
    (tmp_path / f"{name}.py").write_text(text)
    with pytest.raises(ConnectError, match=f"{name}:X.*{words}"):
        connector_class(f"{name}:X")
