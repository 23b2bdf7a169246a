"""The journal of the cluster's metadata counts wherever in log.dirs it is; without it nothing is touched.

The first folder's counted, and one was begun there if there was none. So after `a,b` → `b,a` every topic was
taken in with default settings, and one with retention.ms=-1 lost its records to the default of seven days.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafka_client.wire.messages.delete_topics import DeleteTopicsRequest
from kafka_client.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from logd.storage.names import CLEAN_SHUTDOWN
from tests.logd.broker.log_dirs import fill, logd_in, read, state
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.metadata_folder import ADOPT, as_apache_kafka_leaves_it, lose_journal
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic

TOPIC = 2
ONLINE = (0, 1)


def make_kept(client: RawClient) -> None:
    """Create a topic `kept` of four partitions with unlimited retention, so that all log directories have
    some.
    """
    config = CreatableTopicConfig(name="retention.ms", value="-1")
    topic = CreatableTopic(name="kept", num_partitions=4, replication_factor=1, configs=[config])
    assert client.request(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0
    for index in range(4):
        fill(client, "kept", range(3), partition=index)


def retention(client: RawClient) -> str:
    resource = DescribeConfigsResource(
        resource_type=TOPIC, resource_name="kept", configuration_keys=["retention.ms"]
    )
    (result,) = client.request(DescribeConfigsRequest(resources=[resource]), 4).results
    return str(result.configs[0].value)


def delete(client: RawClient, name: str) -> None:
    (result,) = client.request(DeleteTopicsRequest(topic_names=[name]), 5).responses
    assert result.error_code == ErrorCode.NONE


def refused(logd: LogdProcess) -> str:
    """Start the broker, which refuses to start; return its error, which is one line without a traceback."""
    before = len(logd.log)
    logd.spawn()
    assert logd.wait() == 1
    output = logd.log[before:]
    assert "Traceback" not in output
    (line,) = (line for line in output.splitlines() if line.startswith("logd: "))
    return line


def with_dirs(logd: LogdProcess, tmp_path: Path, *names: str) -> None:
    logd.overrides["log.dirs"] = ",".join(str(tmp_path / name) for name in names)


@deep
@pytest.mark.parametrize("order", [("b", "a"), ("b", "c", "a"), ("new", "a", "b")])
def test_the_order_of_log_dirs_decides_nothing(tmp_path: Path, order: tuple[str, ...]) -> None:
    folders = sorted({"a", "b", *order} - {"new"})
    logd = logd_in(tmp_path, *folders)
    with logd:
        with RawClient(logd.port) as client:
            make_kept(client)
        logd.stop()
        with_dirs(logd, tmp_path, *order)
        logd.start()
        with RawClient(logd.port) as client:
            assert retention(client) == "-1"
            assert [read(client, "kept", partition=index) for index in range(4)] == [[0, 1, 2]] * 4
        assert "taken in" not in logd.log
        assert [path.parent.name for path in tmp_path.glob("*/metadata.journal")] == ["a"]


@deep
def test_folders_of_a_cluster_without_its_journal_are_left_alone(tmp_path: Path) -> None:
    logd = logd_in(tmp_path, "a", "b")
    with logd:
        with RawClient(logd.port) as client:
            make_kept(client)
        logd.stop()
        with_dirs(logd, tmp_path, "b")
        error = refused(logd)
        assert f"log directory {tmp_path / 'b'}: belongs to cluster " in error
        directory = (tmp_path / "a" / "meta.properties").read_text().partition("directory.id=")[2].split()[0]
        assert f"directory.id={directory}" in error
        assert "--override millstream.adopt.log.dirs=true" in error
        with_dirs(logd, tmp_path, "new", "b")
        assert refused(logd) == error
        assert (tmp_path / "b" / CLEAN_SHUTDOWN).exists()
        assert not list((tmp_path / "b").glob("metadata.journal*"))
        assert not (tmp_path / "new" / "meta.properties").exists(), "else it would be of a cluster of its own"
        with_dirs(logd, tmp_path, "b", "a")
        logd.start()
        with RawClient(logd.port) as client:
            assert retention(client) == "-1"


@deep
def test_a_folder_that_may_hold_the_journal_is_waited_for(tmp_path: Path) -> None:
    """Starts are refused while the log directory that may have the journal is away and another is new."""
    logd = logd_in(tmp_path, "a")
    with logd:
        with RawClient(logd.port) as client:
            make_kept(client)
        logd.stop()
        (tmp_path / "a").rename(tmp_path / "elsewhere")
        (tmp_path / "a").touch()
        with_dirs(logd, tmp_path, "new", "a")
        assert f"log directory {tmp_path / 'a'}: cannot be used" in (error := refused(logd))
        assert "metadata.journal" in error
        (tmp_path / "a").unlink()
        (tmp_path / "elsewhere").rename(tmp_path / "a")
        logd.start()
        with RawClient(logd.port) as client:
            assert retention(client) == "-1"


@deep
def test_a_lost_journal_is_begun_anew_only_when_told_so(tmp_path: Path) -> None:
    logd = logd_in(tmp_path, "a", "b")
    with logd:
        with RawClient(logd.port) as client:
            make_kept(client)
        logd.stop()
        lose_journal(tmp_path / "a")
        assert "it was in here" in refused(logd)
        logd.overrides |= ADOPT
        logd.start()
        with RawClient(logd.port) as client:
            assert retention(client) == "604800000"
            assert [read(client, "kept", partition=index) for index in range(4)] == [[0, 1, 2]] * 4
        logd.stop()
        del logd.overrides["millstream.adopt.log.dirs"]
        with_dirs(logd, tmp_path, "b", "a")
        logd.start()
        with RawClient(logd.port) as client:
            assert state(client, "kept") == [ONLINE] * 4
        assert logd.log.count("topic kept was found on disk and taken in") == 1


@deep
def test_of_two_journals_none_is_chosen(tmp_path: Path) -> None:
    logd = logd_in(tmp_path, "a", "b")
    with logd:
        with RawClient(logd.port) as client:
            make_kept(client)
        logd.stop()
        shutil.copy(tmp_path / "a" / "metadata.journal", tmp_path / "b")
        error = refused(logd)
        assert "metadata.journal is in more than one of log.dirs" in error
        assert f"{tmp_path / 'a'} (" in error
        assert f"{tmp_path / 'b'} (" in error
        (tmp_path / "b" / "metadata.journal").rename(tmp_path / "b" / "metadata.journal.old")
        logd.start()
        with RawClient(logd.port) as client:
            assert retention(client) == "-1"


@deep
def test_folders_of_apache_kafka_are_taken_in_at_once_and_for_good(tmp_path: Path) -> None:
    """Folders of Apache Kafka are adopted at the first start and for good.

    Their topics were not in the journal: one deleted while a folder was away came back with it.
    """
    logd = logd_in(tmp_path, "a", "b")
    with logd:
        with RawClient(logd.port) as client:
            make_kept(client)
        create_topic(logd, "gone", partitions=2)
        logd.stop()
        as_apache_kafka_leaves_it(tmp_path / "a", tmp_path / "b")
        logd.start()
        with RawClient(logd.port) as client:
            assert retention(client) == "604800000"
            assert state(client, "gone") == [ONLINE] * 2
        logd.stop()
        (tmp_path / "b").rename(tmp_path / "elsewhere")
        (tmp_path / "b").touch()
        logd.start()
        with RawClient(logd.port) as client:
            delete(client, "gone")
        logd.stop()
        (tmp_path / "b").unlink()
        (tmp_path / "elsewhere").rename(tmp_path / "b")
        logd.start()
        with RawClient(logd.port) as client:
            assert state(client, "gone") == []
            assert [read(client, "kept", partition=index) for index in range(4)] == [[0, 1, 2]] * 4


@deep
def test_a_topic_taken_in_while_a_folder_was_away_grows_when_it_is_back(tmp_path: Path) -> None:
    """Topics adopted while a folder was away get its partitions when it is back.

    A topic's last partition was in that folder, and was not served.
    """
    logd = logd_in(tmp_path, "a", "b")
    with logd:
        with RawClient(logd.port) as client:
            make_kept(client)
        logd.stop()
        as_apache_kafka_leaves_it(tmp_path / "a", tmp_path / "b")
        with_dirs(logd, tmp_path, "a")
        logd.start()
        logd.stop()
        with_dirs(logd, tmp_path, "a", "b")
        logd.start()
        with RawClient(logd.port) as client:
            assert state(client, "kept") == [ONLINE] * 4
            assert read(client, "kept", partition=3) == [0, 1, 2]


@deep
def test_a_folder_of_another_cluster_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    logd = logd_in(tmp_path, "a")
    other = logd_in(tmp_path, "b")
    for process in (logd, other):
        with process:
            process.stop()
    before = (tmp_path / "b" / "meta.properties").read_text()
    (tmp_path / "b" / "metadata.journal").unlink()
    with_dirs(logd, tmp_path, "b", "new", "a")
    assert "belongs to cluster" in refused(logd)
    assert (tmp_path / "b" / "meta.properties").read_text() == before
    assert not (tmp_path / "new" / "meta.properties").exists()
