"""The fixture `millstream_cluster`, as another project has it."""

from __future__ import annotations

from importlib.util import find_spec
from shutil import which

import pytest

from tests.support.depth import deep

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.skipif(
    which("java") is None or find_spec("pyspark") is None,
    reason="ZooKeeper needs Java and PySpark's jars",
)

ALONE = ("-p", "no:randomly", "-p", "no:cacheprovider", "-q")


@deep
def test_tests_share_clusters_with_nothing_in_them(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        addresses = []

        @pytest.mark.parametrize("number", range(3))
        def test_it(millstream_cluster, number):
            cluster = millstream_cluster(2)
            assert list(cluster.brokers) == [1, 2]
            cluster.topic("orders", 2)
            cluster.produce("orders", [("k", str(number))])
            assert [record.text for record in cluster.records("orders")] == [str(number)]
            addresses.append(cluster.bootstrap_servers)
            if number == 1:
                cluster.kill_leader("orders")

        def test_they_shared_one():
            assert len(set(addresses)) == 1

        def test_two_at_once(millstream_cluster):
            one, other = millstream_cluster(1), millstream_cluster(1)
            one.topic("orders")
            other.topic("orders")
            one.produce("orders", ["a"])
            assert (len(one.records("orders")), len(other.records("orders"))) == (1, 0)

        def test_settings(millstream_cluster):
            cluster = millstream_cluster(1, config={"auto.create.topics.enable": False})
            with pytest.raises(Exception, match="new"):
                cluster.produce("new", ["a"])

        def test_own(millstream_cluster):
            assert millstream_cluster(2, own=True).bootstrap_servers not in addresses
        """
    )
    pytester.runpytest_subprocess(*ALONE).assert_outcomes(passed=7)


@deep
def test_a_failed_test_tells_of_its_cluster(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_fails(millstream_cluster):
            cluster = millstream_cluster(2)
            cluster.topic("orders")
            cluster.produce("orders", ["a"])
            cluster.kill_leader("orders")
            assert False
        """
    )
    result = pytester.runpytest_subprocess(*ALONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*Millstream at 127.0.0.1:*,127.0.0.1:*",
            "*orders-0: *; leader *",
            "broker 1 at 127.0.0.1:*, *:",
            "*INFO*",
            "broker 2 at 127.0.0.1:*, *:",
            "*INFO*",
        ]
    )


@deep
def test_workers_of_xdist_have_one_each(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("number", range(4))
        def test_it(millstream_cluster, number):
            cluster = millstream_cluster(1)
            cluster.topic("orders")
            cluster.produce("orders", [str(number)])
            assert [record.text for record in cluster.records("orders")] == [str(number)]
        """
    )
    pytester.runpytest_subprocess(*ALONE, "-n", "2").assert_outcomes(passed=4)
