"""The pytest plugin, as another project has it: a run of pytest over a test file of its own."""

from __future__ import annotations

import pytest

from tests.support.depth import deep

pytest_plugins = ["pytester"]

ALONE = ("-p", "no:randomly", "-p", "no:cacheprovider", "-q")


@deep
def test_each_test_has_an_empty_broker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        addresses = []

        @pytest.mark.parametrize("number", range(3))
        def test_it(millstream, number):
            millstream.topic("orders", 3)
            millstream.produce("orders", [str(number)])
            assert [record.text for record in millstream.records("orders")] == [str(number)]
            addresses.append(millstream.bootstrap_servers)

        @pytest.fixture(scope="session")
        def application(millstream_bootstrap_servers):
            return millstream_bootstrap_servers

        def test_they_share_one(application):
            assert set(addresses) == {application}

        @pytest.mark.millstream(own=True)
        def test_own(millstream):
            assert millstream.bootstrap_servers not in addresses

        @pytest.mark.millstream(in_process=True)
        def test_in_process(millstream):
            assert millstream.in_process
            millstream.produce("orders", ["a"])

        @pytest.mark.millstream(config={"auto.create.topics.enable": False})
        def test_config(millstream):
            with pytest.raises(Exception, match="new"):
                millstream.produce("new", ["a"])
        """
    )
    pytester.runpytest_subprocess(*ALONE).assert_outcomes(passed=7)


@deep
def test_a_failed_test_tells_of_its_broker_and_leaves_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_fails(millstream):
            millstream.produce("orders", ["a"])
            millstream.pause()
            millstream.resume()
            millstream.kill()
            millstream.start()
            assert not millstream.records("orders")

        def test_dies(millstream):
            millstream.kill()
            assert False

        def test_goes_on(millstream):
            millstream.produce("orders", ["b"])
            assert [record.text for record in millstream.records("orders")] == ["b"]
        """
    )
    result = pytester.runpytest_subprocess(*ALONE)
    result.assert_outcomes(failed=2, passed=1)
    result.stdout.fnmatch_lines(["*Millstream at 127.0.0.1:*", "*orders-0: 0 to 1*", "*Fetch v*"])
    result.stdout.fnmatch_lines(["*the broker cannot be asked: the broker does not run*"])


@deep
def test_workers_of_xdist_have_one_each(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("number", range(6))
        def test_it(millstream, number):
            millstream.topic("orders")
            millstream.produce("orders", [str(number)])
            assert [record.text for record in millstream.records("orders")] == [str(number)]
        """
    )
    pytester.runpytest_subprocess(*ALONE, "-n", "2").assert_outcomes(passed=6)


@deep
def test_settings_come_from_the_ini_file(pytester: pytest.Pytester) -> None:
    pytester.makeini(
        """
        [pytest]
        millstream_in_process = true
        millstream_config =
            num.partitions=4
            compression.type=zstd
        """
    )
    pytester.makepyfile(
        """
        import pytest

        def test_it(millstream):
            assert millstream.in_process
            millstream.produce("orders", ["a"])
            assert "orders-3" in millstream.report()

        @pytest.mark.millstream(ownn=True)
        def test_wrong(millstream):
            pass
        """
    )
    result = pytester.runpytest_subprocess(*ALONE)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*the marker millstream does not know ownn, only config, in_process, own=*"])


@deep
def test_nothing_is_imported_until_a_fixture_is_used(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_it():
            packages = {"logd", "connect", "streams", "mirror", "plugins"}
            assert not packages & set(sys.modules)
            ours = {name for name in sys.modules if name.split(".")[0] == "millstream"}
            assert ours == {"millstream", "millstream.testing", "millstream.testing.plugin"}
        """
    )
    pytester.runpytest_subprocess(*ALONE).assert_outcomes(passed=1)


@deep
def test_the_assertions_of_our_packages_are_not_rewritten(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("import pytest; pytest.register_assert_rewrite('logd')")  # as an installed plugin's
    pytester.makepyfile(
        """
        def test_it():
            import kafka_client.errors
            assert "Rewriting" not in type(kafka_client.errors.__loader__).__name__
        """
    )
    pytester.runpytest_subprocess(*ALONE).assert_outcomes(passed=1)


@deep
def test_a_connect_worker_reads_and_writes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import json

        import pytest

        def test_it(millstream, millstream_connect, tmp_path):
            (tmp_path / "in.jsonl").write_text('{"n": 1}\\n{"n": 2}\\n')
            source = {"name": "in", "connector.class": "FilesSource", "file": tmp_path / "in.jsonl",
                      "format": "json", "topic": "numbers"}
            sink = {"name": "out", "connector.class": "FilesSink", "path": tmp_path / "out",
                    "format": "json", "topics": "numbers"}
            worker = millstream_connect(source, sink)
            found = millstream.wait_for_records("numbers", 2, seconds=60)
            assert [json.loads(record.value) for record in found] == [{"n": 1}, {"n": 2}]
            millstream.wait_lag_zero("connect-out", "numbers", seconds=60)
            worker.stop()
            assert [one["name"] for one in worker.connectors] == ["in", "out"]
            assert worker.events()[-1]["failed"] is False
            worker.kill()
            worker.start()

        def test_a_worker_that_does_not_start_says_why(millstream, millstream_connect):
            with pytest.raises(Exception, match="Nonesuch"):
                millstream_connect({"name": "x", "connector.class": "Nonesuch"})
        """
    )
    pytester.runpytest_subprocess(*ALONE).assert_outcomes(passed=2)
