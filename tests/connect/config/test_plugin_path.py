"""Plugins in folders: found, imported beside each other, and chosen by version."""

import itertools
import sys
from pathlib import Path

import pytest

from connect.api import SinkConnector, SourceConnector
from connect.config.plugin_path import PluginPath, VersionRange, path, version_key
from connect.config.references import load
from connect.converters import make_converter, make_header_converter
from connect.errors import ConfigError, ConnectError, NotFound
from connect.runtime import plugins
from connect.transforms.declared import examine
from connect.transforms.registry import transform_class

BASES = (SourceConnector, SinkConnector)
SOURCE = """
from connect.api import SourceConnector, SourceTask
{imports}
class {name}(SourceConnector):
    VERSION = {version!r}
    task_class = SourceTask
    says = {says}
"""


def write(file: Path, name: str, version: str = "0", imports: str = "", says: str = "''") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(SOURCE.format(name=name, version=version, imports=imports, says=says))
    return file


def write_wheel(folder: Path, package: str, version: str, **points: str) -> None:
    """Write what an unpacked wheel has beside its modules."""
    info = folder / f"{package}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    lines = ["[millstream.connectors]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture
def use(monkeypatch):
    """Use folders as this process's plugin.path, for this test."""

    def use(*folders: Path) -> PluginPath:
        own = PluginPath()
        own.use(map(str, folders))
        for module in (
            plugins,
            path,
            sys.modules["connect.config.references"],
            sys.modules["connect.transforms.registry"],
            sys.modules["connect.converters"],
        ):
            monkeypatch.setattr(module, "PLUGIN_PATH", own)
        return own

    return use


def test_files_packages_and_folders_are_plugins_by_their_own_names(tmp_path, use):
    write(tmp_path / "orders.py", "Orders", "1.0")
    write(tmp_path / "flights" / "__init__.py", "Flights", "2.0", "from flights.reader import WORD", "WORD")
    (tmp_path / "flights" / "reader.py").write_text(
        "import flights.parts.deep\nWORD = flights.parts.deep.WORD"
    )
    (tmp_path / "flights" / "parts").mkdir()
    (tmp_path / "flights" / "parts" / "deep.py").write_text("WORD = 'flies'")
    (tmp_path / "flights" / "parts" / "__init__.py").write_text("")
    site = tmp_path / "weather" / "lib" / "python3.11" / "site-packages"
    write(site / "weather.py", "Weather", "0", "from helper import WORD", "WORD")
    (site / "helper.py").write_text("WORD = 'rains'")
    write_wheel(site, "weather", "3.1", Weather="weather:Weather")
    use(tmp_path)
    assert plugins.connector_class("Orders").VERSION == "1.0"
    assert plugins.connector_class("flights:Flights").says == "flies"
    assert plugins.connector_class("Weather").says == "rains"
    assert plugins.connector_class("Weather").VERSION == "3.1"  # its distribution's: it has none of its own
    listed = {each["class"]: each for each in plugins.list_plugins()}
    assert listed["Weather"] == {
        "class": "Weather", "type": "source", "version": "3.1", "location": str(tmp_path / "weather"),
    }  # fmt: skip
    assert {"orders", "flights", "weather", "helper"}.isdisjoint(sys.modules)


def test_a_plugin_shadows_nothing(tmp_path, use):
    (tmp_path / "json.py").write_text("raise ValueError('not this json')  # connect.api")
    write(tmp_path / "plugins" / "__init__.py", "FilesSource")
    write(tmp_path / "mine.py", "FilesSource", "9", "import json", "json.dumps(1)")
    use(tmp_path)
    import json

    assert json.loads("1") == 1
    assert plugins.connector_class("FilesSource").__module__.startswith("plugins.files")
    mine = plugins.connector_class("FilesSource", "9")
    assert (mine.__module__.rpartition(".")[2], mine.says) == ("mine", "1")
    assert plugins.connector_class("FilesSource", "latest") is mine


def test_two_plugins_have_modules_of_one_name(tmp_path, use):
    for word in ("a", "b"):
        write(tmp_path / word / f"plugin_{word}.py", word.upper(), "1", "import helper", "helper.WORD")
        (tmp_path / word / "helper.py").write_text(f"WORD = {word!r}")
    use(tmp_path)
    assert [plugins.connector_class(name).says for name in "AB"] == ["a", "b"]


def test_versions_are_chosen_by_range(tmp_path, use):
    for version in ("1.0", "1.10", "1.9", "2.0-rc1"):
        write(tmp_path / f"orders-{version}" / "orders.py", "Orders", version)
    use(tmp_path)

    def chosen(version: str | None) -> str:
        return plugins.connector_class("Orders", version).VERSION

    assert [chosen(v) for v in (None, "latest", "1.0", "[1.0,1.10)", "(,1.0]")] == [
        "2.0-rc1", "2.0-rc1", "1.0", "1.9", "1.0",
    ]  # fmt: skip
    with pytest.raises(ConfigError, match=r"there are 1\.0, 1\.9, 1\.10, 2\.0-rc1"):
        chosen("[3,)")
    with pytest.raises(ConfigError, match="a range such as"):
        chosen("[1.0")


PARTS = """
from connect.api import Predicate, Transform
from connect.converters import Converter, HeaderConverter

class Mark(Transform):
    VERSION = {version!r}

class IsMarked(Predicate):
    VERSION = {version!r}

class Marks(Converter):
    VERSION = {version!r}

class MarkHeaders(HeaderConverter):
    VERSION = {version!r}
"""


@pytest.fixture
def marks(tmp_path, use):
    """Versions 1.0 and 2.0 of a transform, a predicate and converters in `plugin.path`."""
    for version in ("1.0", "2.0"):
        file = tmp_path / f"marks-{version}" / "marks.py"
        file.parent.mkdir()
        file.write_text(PARTS.format(version=version))
    use(tmp_path)


@pytest.mark.parametrize("version", [None, "latest", "1.0", "[1.0,2.0)", "2.0"])
def test_transforms_predicates_and_converters_are_chosen_by_version(marks, version):
    expected = "2.0" if version in (None, "latest", "2.0") else "1.0"
    config = {
        "transforms": "m",
        "transforms.m.type": "marks:Mark",
        "transforms.m.predicate": "p",
        "predicates": "p",
        "predicates.p.type": "marks:IsMarked",
    }
    own = {}
    if version is not None:
        config |= {f"{alias}.plugin.version": version for alias in ("transforms.m", "predicates.p")}
        own = {"plugin.version": version}
    declared = examine(config)
    assert declared.errors == []
    parts = (declared.transforms[0], declared.predicates["p"])
    assert [part.plugin.VERSION for part in parts] == [expected] * 2
    assert [part.settings for part in parts] == [{}, {}]
    converters = (
        make_converter("value.converter", "marks:Marks", own),
        make_header_converter("marks:MarkHeaders", own),
    )
    assert [converter.VERSION for converter in converters] == [expected] * 2


def test_versions_that_do_not_exist_are_errors_of_their_keys(marks):
    config = {"transforms": "m", "transforms.m.type": "marks:Mark", "transforms.m.plugin.version": "3.0"}
    (error,) = examine(config).errors
    assert str(error) == "transforms.m.plugin.version=3.0: is no version of marks:Mark; there are 1.0, 2.0"
    with pytest.raises(ConfigError, match=r"^key.converter.plugin.version=3.0: .* there are 1.0, 2.0"):
        make_converter("key.converter", "marks:Marks", {"plugin.version": "3.0"})
    with pytest.raises(ConfigError, match=r"key.converter.plugin.version.*a range such as"):
        make_converter("key.converter", "marks:Marks", {"plugin.version": "[3.0"})
    with pytest.raises(ConfigError, match=r"value.converter.plugin.version=1.0: is no version of string"):
        make_converter("value.converter", "string", {"plugin.version": "1.0"})
    with pytest.raises(ConfigError, match="is no converter"):
        make_converter("value.converter", "strin", {"plugin.version": "1.0"})


def test_a_new_version_is_noticed_and_the_old_class_stays_as_it_is(tmp_path, use):
    own = use(tmp_path)
    file = write(tmp_path / "orders.py", "Orders", "1", "import time", "lambda self: time and 1")
    assert own.rescan()
    first = plugins.connector_class("Orders")
    assert plugins.connector_class("Orders") is first
    assert not own.rescan()
    write(file, "Orders", "2", "import time", "lambda self: time and 22")
    plugins.reload_plugins()
    second = plugins.connector_class("Orders")
    assert (first.VERSION, first().says(), second.VERSION, second().says()) == ("1", 1, "2", 22)
    file.unlink()
    plugins.reload_plugins()
    with pytest.raises(NotFound):
        plugins.connector_class("Orders")


def test_broken_plugins_are_told_and_the_others_work(tmp_path, use, caplog):
    write(tmp_path / "good.py", "Good")
    for number, text in enumerate(("syntax error (", "import no_such_module", "1 / 0", "raise SystemExit")):
        (tmp_path / f"bad{number}.py").write_text(f"# connect.api\n{text}")
    wheel = tmp_path / "wheel"
    (wheel / "pack").mkdir(parents=True)
    write_wheel(wheel, "pack", "1", Missing="pack:Missing")
    use(tmp_path, tmp_path / "absent")
    listed = {each["class"]: each for each in plugins.list_plugins()}
    assert listed["Good"]["type"] == "source"
    assert "cannot be loaded" in listed["Missing"]["error"]
    assert all(f"bad{number}" in caplog.text for number in range(4))
    assert "absent cannot be read" in caplog.text
    with pytest.raises(ConnectError, match="cannot be loaded"):
        plugins.connector_class("Missing")


def test_transforms_and_converters_are_found_there_too(tmp_path, use):
    (tmp_path / "shout.py").write_text(
        "from connect.api.transform import Transform\nclass Shout(Transform):\n    pass\n"
    )
    use(tmp_path)
    assert transform_class("transforms.s.type", "Shout").__name__ == "Shout"
    assert transform_class("transforms.s.type", "shout:Shout") is transform_class(
        "transforms.s.type", "Shout"
    )
    assert load("shout:Shout").__name__ == "Shout"


def test_versions_are_ordered_as_mavens():
    ordered = ["1-alpha", "1-beta", "1-rc1", "1-rc2", "1-snapshot", "1", "1.0.1", "1.2", "1.10", "2.0"]
    for low, high in itertools.pairwise(ordered):
        assert version_key(low) < version_key(high), (low, high)
    assert version_key("1") == version_key("1.0") == version_key("1.0.0") == version_key("1.0-final")
    several = VersionRange.parse("[1,2),[3,)")
    assert several is not None
    assert [v in several for v in ("1", "2", "2.5", "3", "4")] == [True, False, False, True, True]
    for text in ("[1", "1]", "(1)", "[]", "[1,2,3]", "1 2", "[1,2)x"):
        with pytest.raises(ValueError, match=r"must be|written"):
            VersionRange.parse(text)
