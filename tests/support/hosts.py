"""Hosts with a network between them, as namespaces of this machine: packets are lost without an error.

    with Hosts([1, 2, "clients"]) as hosts:
        subprocess.Popen([*hosts.inside(1), "a-server", hosts.address(1)])
        hosts.within("clients", lambda: socket.create_connection((hosts.address(1), port)))
        hosts.silence((1, 2))       # what travels from 1 to 2 is lost; in the other direction nothing is
        hosts.cut((1, 2), (2, 1))   # nor do they find each other's address (ARP)
        hosts.unplug(2)             # from everybody; with `take_down` it knows
        hosts.worsen(10)            # each packet is lost with a probability of 10 %, and late
        hosts.heal()

Each host is a network namespace with one interface, a veth whose other end is a port of a bridge; that is in
a namespace of its own, with the rules that lose packets. The test itself has an interface there, too, and no
rule parts it from anybody. With `network.Network`, connections open and what is
sent waits. Here TCP has to retry, later and later, and connecting goes on until one side gives up.

A namespace lives as long as a process in it, and an interface as long as its peer. So nothing is left, even
after a test is killed.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

import pytest

from tests.support.network import Direction, End

T = TypeVar("T")

_made = itertools.count(1)

NETS: Final = [f"198.{18 + n // 256}.{n % 256}" for n in range(512)]
"""RFC 2544's addresses, for tests of networks: nobody else's."""
TEST: Final = 254
"""The test's own address in such a net."""
TRIAL: Final = (
    "ip link add trial type bridge && nft add table bridge trial "
    '&& ip link add port type veth peer name "$1" netns "$2"'
)
"""A command that checks that namespaces can be made. All that it makes goes with the namespace."""
NEEDED: Final = {"ip": "iproute2", "tc": "iproute2", "nft": "nftables", "nsenter": "util-linux"}
PATH: Final = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
"""Where administrators' tools are, also for who does not look there."""
ENVIRONMENT: Final = {**os.environ, "PATH": PATH}
CLONE_NEWNET: Final = 0x40000000
LATENCY_MS: Final = 20
NARROW: Final = ["tbf", "rate", "20mbit", "burst", "16kbit", "latency", "100ms"]
"""In place of netem's delay: what does not fit waits, and is lost when it waits for longer."""


def why_no_hosts() -> str | None:
    """Return the reason why namespaces cannot be made here, None if they can."""
    if missing := sorted(
        {package for tool, package in NEEDED.items() if shutil.which(tool, path=PATH) is None}
    ):
        return f"{' and '.join(missing)} not installed"
    line = ["unshare", "--net", "sh", "-c", TRIAL, "sh", f"mst{os.getpid()}-{next(_made)}", str(os.getpid())]
    tried = subprocess.run(line, capture_output=True, encoding="utf-8", env=ENVIRONMENT)
    if tried.returncode != 0:
        return f"network namespaces are not permitted here: {tried.stderr.strip()}"
    return None


def need_hosts() -> None:
    """Skip the test where namespaces cannot be had, or tools are missing."""
    if (why := why_no_hosts()) is not None:
        pytest.skip(why)


class Hosts:
    """Hosts in namespaces, as a context manager. Disturbances of the network take effect on return."""

    def __init__(self, ends: Iterable[End]) -> None:
        self._numbers = {end: number for number, end in enumerate(ends, 1)}
        self._stack = ExitStack()
        self.interface = f"mst{os.getpid()}-{next(_made)}"  # 15 characters at most
        """The test's own."""

    def __enter__(self) -> Self:
        need_hosts()
        with ExitStack() as stack:
            self._switch = stack.enter_context(_Namespace())
            self._spaces = {end: stack.enter_context(_Namespace()) for end in self._numbers}
            stack.callback(self._switch.tries, "ip", "link", "del", f"port{TEST}")
            self._switch.ip("link add switch type bridge", "link set switch up")
            for end, number in self._numbers.items():
                self._switch.plug(number, "eth0", self._spaces[end].pid)
            self._switch.plug(TEST, self.interface, os.getpid())
            self._net = _take_net(self.interface)
            for end, number in self._numbers.items():
                address = f"{self._net}.{number}/24"
                self._spaces[end].ip(f"addr add {address} dev eth0", "link set eth0 up")
            self.heal()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def address(self, end: End) -> str:
        """Return the IP address of a host."""
        return f"{self._net}.{self._numbers[end]}"

    def inside(self, end: End) -> list[str]:
        """Return the words in front of a command line that runs it on that host.

        The started process is the command itself: nsenter executes it.
        """
        return self._spaces[end].enter

    def within(self, end: End, work: Callable[[], T]) -> T:
        """Run `work` on that host and return its result. Sockets and threads made there stay there."""
        results: list[T] = []
        errors: list[BaseException] = []

        def enter() -> None:
            try:
                self._spaces[end].join()
                results.append(work())
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=enter, name=f"on host {end}")
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
        return results[0]

    # Disturbing

    def silence(self, *directions: Direction) -> None:
        """Lose all packets in these directions, until `heal`."""
        self._lose(f"ip saddr {self.address(one)} ip daddr {self.address(two)}" for one, two in directions)

    def cut(self, *directions: Direction) -> None:
        """Lose all packets in these directions, and ARP requests too: no host finds an unknown address."""
        self.silence(*directions)
        self._lose(
            f"arp saddr ip {self.address(one)} arp daddr ip {self.address(two)}" for one, two in directions
        )

    def unplug(self, *ends: End) -> None:
        """Lose all packets from and to these hosts, but for the test's own, until `heal`."""
        for one, two in (("iifname", "oifname"), ("oifname", "iifname")):
            self._lose(f'{one} "{self._port(end)}" {two} != "port{TEST}"' for end in ends)

    def take_down(self, *ends: End) -> None:
        """Take down a host's interface until `heal`. The host notices, and the test cannot reach it."""
        for end in ends:
            self._spaces[end].ip("link set eth0 down")

    def worsen(self, percent: int, *ends: End) -> str:
        """Lose and delay packets to these hosts, or to all, until `heal`. Return the means."""
        ports = [self._port(end) for end in ends or self._numbers]
        late = ["netem", "delay", f"{LATENCY_MS}ms", f"{LATENCY_MS // 2}ms", "loss", f"{percent}%"]
        if all(self._switch.tries("tc", "qdisc", "replace", "dev", port, "root", *late) for port in ports):
            return "netem"
        for port in ports:
            self._switch.run("tc", "qdisc", "replace", "dev", port, "root", *NARROW)
        self._lose(f'oifname "{port}" numgen random mod 100 < {percent}' for port in ports)
        return "numgen and tbf"

    def lost(self) -> int:
        """Packets that rules have lost since the last `heal`."""
        words = self._switch.run("nft", "list", "chain", "bridge", "faults", "forward").split()
        return sum(int(words[at + 1]) for at, word in enumerate(words) if word == "packets")

    def heal(self) -> None:
        """Remove all disturbances; TCP notices at its next retry."""
        self._switch.run("nft", "-f", "-", stdin=NO_RULES)
        for end, space in self._spaces.items():
            space.ip("link set eth0 up")
            self._switch.tries("tc", "qdisc", "del", "dev", self._port(end), "root")

    def _port(self, end: End) -> str:
        """Return the name of a host's port on the switch."""
        return f"port{self._numbers[end]}"

    def _lose(self, packets: Iterable[str]) -> None:
        rules = [f"add rule bridge faults forward {which} counter drop\n" for which in packets]
        self._switch.run("nft", "-f", "-", stdin="".join(rules))


NO_RULES: Final = """\
add table bridge faults
delete table bridge faults
add table bridge faults
add chain bridge faults forward { type filter hook forward priority 0; }
"""


def _take_net(interface: str) -> str:
    """Have the test's own interface be in a net that nobody uses here; its first three numbers."""
    start = os.getpid() % len(NETS)
    for net in [*NETS[start:], *NETS[:start]]:
        if _run_ip("route", "show", f"{net}.0/24"):
            continue
        _run_ip("addr", "add", f"{net}.{TEST}/24", "dev", interface)
        _run_ip("link", "set", interface, "up")
        return net
    raise AssertionError("all nets for tests are taken")


def _run_ip(*arguments: str) -> str:
    """Run `ip` in the test's own namespace and return its output. Raises AssertionError if it fails."""
    done = subprocess.run(["ip", *arguments], capture_output=True, encoding="utf-8", env=ENVIRONMENT)
    assert done.returncode == 0, f"{arguments}: {done.stderr}"
    return done.stdout


class _Namespace:
    """A network namespace, kept alive by a process that ends when this one does."""

    def __enter__(self) -> Self:
        self._holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env=ENVIRONMENT,
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "up\n"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._holder.communicate()

    @property
    def pid(self) -> int:
        return self._holder.pid

    @property
    def _file(self) -> Path:
        return Path(f"/proc/{self.pid}/ns/net")

    @property
    def enter(self) -> list[str]:
        """In front of a command line."""
        return ["nsenter", f"--net={self._file}", "--"]

    def join(self) -> None:
        """Have this thread be there."""
        with self._file.open() as file:
            if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"setns to {self._file}")

    def run(self, *command: str, stdin: str = "") -> str:
        """Run a command in the namespace and return its output.

        Raises AssertionError with its error output.
        """
        done = self._done(command, stdin)
        assert done.returncode == 0, f"{command}: {done.stderr}\n{stdin}"
        return done.stdout

    def tries(self, *command: str) -> bool:
        """Return True if a command succeeds in the namespace."""
        return self._done(command, "").returncode == 0

    def _done(self, command: Sequence[str], stdin: str) -> subprocess.CompletedProcess[str]:
        line = [*self.enter, *command]
        return subprocess.run(line, input=stdin, capture_output=True, encoding="utf-8", env=ENVIRONMENT)

    def ip(self, *commands: str) -> None:
        """Several commands of `ip`."""
        self.run("ip", "-batch", "-", stdin="".join(f"{command}\n" for command in commands))

    def plug(self, number: int, interface: str, pid: int) -> None:
        """Give the namespace of a process an interface that leads to a port here."""
        self.ip(
            f"link add port{number} type veth peer name {interface} netns {pid}",
            f"link set port{number} master switch up",
        )
