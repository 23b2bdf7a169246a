"""Database servers for tests, of Debian's packages: an unprivileged user's, on free loopback ports."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tests.support.ports import free_port
from tests.support.waiting import wait_for

USER = "millstream"
PASSWORD = "pa:ss/word@1"


class Server:
    """A running server: its engine of an administrator, and what a connector's config says."""

    def __init__(self, kind: str, port: int, admin: sa.URL) -> None:
        self.kind, self.port = kind, port
        self.admin = sa.create_engine(admin, poolclass=sa.pool.NullPool)
        scheme = {"postgresql": "postgresql", "mariadb": "mariadb"}[kind]
        self.url = f"jdbc:{scheme}://127.0.0.1:{port}/test"
        self.config = {"connection.url": self.url, "connection.user": USER, "connection.password": PASSWORD}

    def answers(self) -> bool:
        """Return True if the server takes a statement."""
        with suppress(sa.exc.OperationalError), self.admin.connect() as connection:
            connection.execute(sa.text("SELECT 1"))
            return True
        return False


def _program(name: str, *places: str) -> str | None:
    path = shutil.which(name)
    for place in places:
        path = path or next(map(str, sorted(Path("/").glob(f"{place.lstrip('/')}/{name}"))), None)
    return path


def _unprivileged(folder: Path, *names: str) -> dict[str, Any]:
    """Return the arguments of Popen that make a process run as one of the users; root may not run servers."""
    if os.geteuid() != 0:
        return {}
    for name in (*names, "nobody"):
        with suppress(KeyError):
            user = pwd.getpwnam(name)
            os.chown(folder, user.pw_uid, user.pw_gid)
            return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise AssertionError("no unprivileged user")


def _run(command: list[str], options: dict[str, Any], folder: Path) -> None:
    done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=folder, **options)
    assert done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}"


@contextmanager
def _process(command: list[str], options: dict[str, Any], folder: Path) -> Iterator[None]:
    with (folder.parent / f"{folder.name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, **options)
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def postgres() -> Iterator[Server | None]:
    """Run PostgreSQL; None if it is not installed."""
    initdb = _program("initdb", "/usr/lib/postgresql/*/bin")
    if initdb is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="millstream-postgres-") as text:
        Path(text).chmod(0o755)
        folder = Path(text) / "data"
        folder.mkdir()
        options = _unprivileged(folder, "postgres")
        install = [initdb, "-D", str(folder), "-U", "admin", "--auth=trust", "--encoding=UTF8", "--no-sync"]
        _run(install, options, folder)
        port = free_port()
        settings = {
            "listen_addresses": "127.0.0.1", "port": str(port), "unix_socket_directories": str(folder),
            "fsync": "off", "max_prepared_transactions": "10",
        }  # fmt: skip
        command = [str(Path(initdb).with_name("postgres")), "-D", str(folder)]
        command += [f"--{key}={value}" for key, value in settings.items()]
        with _process(command, options, folder):
            server = Server("postgresql", port, sa.URL.create(
                "postgresql+psycopg", "admin", host="127.0.0.1", port=port, database="postgres"
            ))  # fmt: skip
            wait_for(server.answers)
            with server.admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql(f"CREATE USER {USER} PASSWORD '{PASSWORD}'")
                connection.exec_driver_sql(f"CREATE DATABASE test OWNER {USER}")
            server.admin = sa.create_engine(server.admin.url.set(database="test"), poolclass=sa.pool.NullPool)
            yield server


def _is_listening(path: Path) -> bool:
    """Return True if a server takes connections at a Unix socket."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


@contextmanager
def mariadb() -> Iterator[Server | None]:
    """Run MariaDB; None if it is not installed."""
    install = _program("mariadb-install-db", "/usr/bin")
    daemon = _program("mariadbd", "/usr/sbin")
    if install is None or daemon is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="millstream-mariadb-") as text:
        Path(text).chmod(0o755)
        folder = Path(text) / "data"
        folder.mkdir()
        options = _unprivileged(folder, "mysql")
        # A MariaDB that starts deletes the temporary tables of any other that shares its folder for them.
        common = ["--no-defaults", f"--datadir={folder}", f"--tmpdir={folder}"]
        _run(
            [install, *common, "--auth-root-authentication-method=normal", "--skip-test-db"], options, folder
        )
        port = free_port()
        command = [daemon, *common, f"--port={port}", "--bind-address=127.0.0.1", f"--socket={folder}/socket"]
        command += [
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-flush-method=nosync",
            "--sync-frm=0",
            "--innodb-buffer-pool-size=32M",
            "--skip-name-resolve",
        ]
        with _process(command, options, folder):
            admin = sa.URL.create("mariadb+pymysql", "root", host="127.0.0.1", port=port)
            server = Server("mariadb", port, admin.set(query={"unix_socket": f"{folder}/socket"}))
            # PyMySQL leaves a socket open that could not be connected.
            wait_for(lambda: _is_listening(folder / "socket"))
            wait_for(server.answers)
            with server.admin.begin() as connection:
                connection.exec_driver_sql("CREATE DATABASE test CHARACTER SET utf8mb4")
                connection.exec_driver_sql(f"CREATE USER {USER}@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'")
                connection.exec_driver_sql(f"GRANT ALL ON test.* TO {USER}@'127.0.0.1'")
                connection.exec_driver_sql(f"GRANT PROCESS ON *.* TO {USER}@'127.0.0.1'")
            server.admin = sa.create_engine(server.admin.url.set(database="test"), poolclass=sa.pool.NullPool)
            yield server
