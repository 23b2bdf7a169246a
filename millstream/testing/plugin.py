"""The pytest plugin: fixtures, and the broker's report added to a failed test.

pytest loads it by its entry point wherever Millstream is installed, so nothing of Millstream is imported here
before a fixture is used.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.testing.broker import Broker
    from millstream.testing.connect_worker import ConnectWorkers
    from millstream.testing.kafka import Kafka
    from millstream.testing.shared_clusters import ClusterLoans, SharedClusters

MARKER = (
    "millstream(config=None, in_process=None, own=False): the test's broker. config: Kafka's keys for a "
    "broker of its own; in_process: in a thread of the test's process; own: not shared with other tests."
)
PACKAGES = frozenset(
    {"connect", "kafka_client", "logd", "millstream", "mirror", "plugins", "pyspark_millstream", "streams"}
)
"""The packages of Millstream's distribution."""
_WISHES = ("config", "in_process", "own")
_used: pytest.StashKey[list[Kafka]] = pytest.StashKey()
"""The brokers and clusters that a test uses."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the plugin's settings in an ini file."""
    parser.addini(
        "millstream_config",
        "Kafka's keys for the brokers of all tests, one key=value a line",
        type="linelist",
        default=[],
    )
    parser.addini(
        "millstream_in_process",
        "run brokers in a thread of the test's process unless a test's marker says otherwise",
        type="bool",
        default=False,
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and exclude Millstream's packages from assertion rewriting.

    pytest rewrites the assertions of all packages in a plugin's distribution. Recompiling Millstream's
    packages would delay the first test of a fresh installation by a second. pytest has no public way to
    decline; if `_must_rewrite` is missing, the first test is only slower.
    """
    config.addinivalue_line("markers", MARKER)
    to_rewrite = getattr(getattr(config.pluginmanager, "rewrite_hook", None), "_must_rewrite", None)
    if isinstance(to_rewrite, set):
        to_rewrite -= PACKAGES


class SharedBrokers:
    """The brokers shared by all tests of this process: one in-process, one in a process of its own."""

    def __init__(self, config: Mapping[str, object]) -> None:
        self._config = config
        self._brokers: dict[bool, Broker] = {}

    def lend(self, in_process: bool) -> Broker:
        """Return the shared broker, empty: started if it was not running, else cleaned."""
        if in_process in self._brokers:
            self._brokers[in_process].clean()
        return self.started(in_process)

    def started(self, in_process: bool) -> Broker:
        """Return the shared broker without cleaning it, started if it was not running."""
        from millstream.testing.broker import Broker

        if in_process not in self._brokers:
            self._brokers[in_process] = Broker(self._config, in_process=in_process).start()
        return self._brokers[in_process]

    def stop(self) -> None:
        """Stop all shared brokers."""
        for broker in self._brokers.values():
            broker.stop()


@pytest.fixture(scope="session")
def _millstream_shared(pytestconfig: pytest.Config) -> Iterator[SharedBrokers]:
    shared = SharedBrokers(_configured(pytestconfig))
    yield shared
    shared.stop()


@pytest.fixture(scope="session")
def millstream_bootstrap_servers(pytestconfig: pytest.Config, _millstream_shared: SharedBrokers) -> str:
    """Return the address of the broker that tests share, for fixtures of a wider scope than a test.

    Everything such fixtures create there is deleted when a test uses the shared broker through `millstream`.
    """
    in_process = bool(pytestconfig.getini("millstream_in_process"))
    return _millstream_shared.started(in_process).bootstrap_servers


@pytest.fixture
def millstream(request: pytest.FixtureRequest, _millstream_shared: SharedBrokers) -> Iterator[Broker]:
    """An empty Kafka broker: `.bootstrap_servers`, `.topic(name)`, `.produce(...)`, `.records(topic)`, ...

    One process for all tests, cleaned in between; see the marker `millstream` for others.
    """
    wishes = _wishes(request.node)
    in_process = wishes.get("in_process")
    if in_process is None:
        in_process = bool(request.config.getini("millstream_in_process"))
    config = wishes.get("config")
    if config is None and not wishes.get("own"):
        broker = _millstream_shared.lend(in_process)
        _use(request.node, broker)
        yield broker
        return
    from millstream.testing.broker import Broker

    with Broker({**_configured(request.config), **(config or {})}, in_process=in_process) as broker:
        _use(request.node, broker)
        yield broker


@pytest.fixture(scope="session")
def _millstream_clusters(pytestconfig: pytest.Config) -> Iterator[SharedClusters]:
    from millstream.testing.shared_clusters import SharedClusters

    shared = SharedClusters(_configured(pytestconfig))
    yield shared
    shared.stop()


@pytest.fixture
def millstream_cluster(
    request: pytest.FixtureRequest, _millstream_clusters: SharedClusters
) -> Iterator[ClusterLoans]:
    """Clusters: `millstream_cluster(3)` is one of three brokers with nothing in it: `.bootstrap_servers`,
    `.topic(name)`, `.leader(topic)`, `.brokers[1].kill()`, ... Tests share them, cleaned in between.

    It takes Java and the extra `spark`, whose jars have ZooKeeper.
    """
    from millstream.testing.shared_clusters import ClusterLoans

    loans = ClusterLoans(_millstream_clusters, lambda cluster: _use(request.node, cluster))
    yield loans
    loans.give_back()


@pytest.fixture
def millstream_connect(millstream: Broker, tmp_path: Path) -> Iterator[ConnectWorkers]:
    """Connect workers: `millstream_connect({"name": ..., "connector.class": ..., ...})` starts one with that
    connector (or several), reading and writing `millstream`. They end with the test.
    """
    from millstream.testing.connect_worker import ConnectWorkers

    workers = ConnectWorkers(millstream, tmp_path)
    yield workers
    workers.stop()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Add the reports of its brokers to a failed test: end offsets and the last requests."""
    outcome = yield
    report = outcome.get_result()
    if report.when != "teardown" and report.failed:
        for kafka in item.stash.get(_used, ()):
            report.sections.append((f"Millstream at {kafka.bootstrap_servers}", kafka.report()))


def _use(node: pytest.Item, kafka: Kafka) -> None:
    """Note that the test uses `kafka`, so that its report is shown if the test fails."""
    node.stash.setdefault(_used, []).append(kafka)


def _wishes(node: pytest.Item) -> Mapping[str, Any]:
    marker = node.get_closest_marker("millstream")
    if marker is None:
        return {}
    unknown = sorted(marker.kwargs.keys() - set(_WISHES))
    if unknown or marker.args:
        unsupported = ", ".join([*map(repr, marker.args), *unknown])
        raise pytest.UsageError(
            f"the marker millstream does not know {unsupported}, only {', '.join(_WISHES)}="
        )
    return marker.kwargs


def _configured(config: pytest.Config) -> dict[str, object]:
    pairs: dict[str, object] = {}
    for line in config.getini("millstream_config"):
        key, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"millstream_config: {line!r} is not key=value")
        pairs[key.strip()] = value.strip()
    return pairs
