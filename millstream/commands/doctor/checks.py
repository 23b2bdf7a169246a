"""The checks of the doctor. Each check reports what it found, and a remedy if one is needed."""

from __future__ import annotations

import os
import re
import resource
import shutil
import socket
import subprocess
from pathlib import Path

from kafka_client.records import reader
from kafka_client.uncompiled import VARIABLE
from logd.config.listeners import Endpoint
from millstream.commands.doctor.certificates import certificates
from millstream.commands.doctor.clock import clock
from millstream.commands.doctor.finding import FAILED, OK, WARNING, Finding
from millstream.commands.doctor.permissions import permissions
from millstream.commands.doctor.settings import CheckedSettings
from millstream.zookeeper.state import NotServing, state

JAVA = 17
"""The oldest Java version that Spark 4 runs on."""
FILES = 65_536
"""The lowest good limit of open files for some thousand partitions: a segment has three."""
FREE_BYTES = 5 * 1024**3
FREE_SHARE = 0.05
"""The share of a disk that should be free, or FREE_BYTES if that is less."""
PATIENCE_SECONDS = 5.0


def run_checks(settings: CheckedSettings) -> list[Finding]:
    """Run all checks."""
    return [
        java(),
        record_core(),
        *map(port, settings.listeners),
        file_limit(),
        *map(disk, settings.log_dirs),
        clock(settings.log_dirs),
        *certificates(settings),
        *permissions(settings),
        *map(zookeeper, settings.zookeeper),
    ]


def java() -> Finding:
    """Check for Java, which only Spark and Kafka's own tools need."""
    home = os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else shutil.which("java")
    remedy = f"for Spark install Java {JAVA} or newer and have it in PATH or JAVA_HOME"
    if program is None:
        return Finding("java", WARNING, "no java in PATH", remedy)
    try:
        ended = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("java", WARNING, f"{program}: {error}", remedy)
    match = re.search(r'version "(?:1\.)?(\d+)[^"]*"', ended.stderr + ended.stdout)
    if match is None:
        return Finding("java", WARNING, f"{program} does not tell its version", remedy)
    version = int(match[1])
    what = f"Java {version}, {program}"
    return Finding("java", OK, what) if version >= JAVA else Finding("java", WARNING, what, remedy)


def record_core() -> Finding:
    """Check that records are read and written by compiled modules."""
    if not str(reader.__file__).endswith(".py"):
        return Finding("record core", OK, "compiled")
    if os.environ.get(VARIABLE) == "1":
        return Finding("record core", WARNING, f"not compiled, as {VARIABLE} says", f"unset {VARIABLE}")
    remedy = "install a C compiler and Python's headers, then install Millstream again"
    return Finding("record core", WARNING, "not compiled: plain Python, many times slower", remedy)


def port(listener: Endpoint) -> Finding:
    """Check that a broker could listen on the address."""
    name = f"port {listener}"
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            listener.host or None, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, proto) as probe:
            # As servers do, so that closing connections of a stopped broker do not count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        remedy = "stop what listens there (a broker that is running already?), or choose another in listeners"
        return Finding(name, FAILED, error.strerror or str(error), remedy)
    return Finding(name, OK, "free")


def file_limit() -> Finding:
    """Check how many files a process may open. logd raises its own limit to the hard one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard in (resource.RLIM_INFINITY, -1):
        return Finding("file limit", OK, "none")
    if hard >= FILES:
        return Finding("file limit", OK, f"{hard:,}")
    remedy = f"allow {FILES:,}: LimitNOFILE= of the service, or nofile in /etc/security/limits.conf"
    return Finding("file limit", WARNING, f"{hard:,}", remedy)


def disk(folder: Path) -> Finding:
    """Check that a log directory can be written to and has room."""
    name = f"disk {folder}"
    there = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return Finding(
            name, FAILED, f"{there} cannot be written to", "choose another in log.dirs, or chown it"
        )
    usage = shutil.disk_usage(there)
    what = f"{usage.free / 1e9:,.1f} of {usage.total / 1e9:,.1f} GB free"
    if usage.free < min(FREE_BYTES, usage.total * FREE_SHARE):
        return Finding(
            name, FAILED, what, "make room, or lower retention.ms and retention.bytes of large topics"
        )
    return Finding(name, OK, what)


def zookeeper(server: str) -> Finding:
    """Check that ZooKeeper answers `srvr`, its command for the state of a server."""
    name = f"zookeeper {server}"
    host, _, number = server.rpartition(":") if re.search(r":\d+$", server) else (server, "", "2181")
    try:
        server_state = state(host.strip("[]"), int(number), PATIENCE_SECONDS)
    except NotServing as error:
        remedy = "is it ZooKeeper, is srvr among its 4lw.commands.whitelist, does it have a quorum?"
        return Finding(name, FAILED, str(error), remedy)
    except OSError as error:
        what = error.strerror or str(error)
        return Finding(name, FAILED, what, "start it, or mend zookeeper.connect")
    return Finding(name, OK, f"{server_state.mode}, ZooKeeper {server_state.version}")
