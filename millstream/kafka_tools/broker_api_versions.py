"""`kafka-broker-api-versions`: the versions of each API that brokers answer, beside Java's client's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from millstream.kafka_tools.java.java_apis import APIS, Api
from millstream.kafka_tools.java.java_errors import JavaError
from millstream.kafka_tools.options.arguments import Old, Options
from millstream.kafka_tools.options.option import Option
from millstream.kafka_tools.running import HELP, VERSION, Cluster, failed, read_arguments, tool

if TYPE_CHECKING:
    from kafka_client import BrokerNode
    from millstream.terminal.session import Session

OPTIONS = Options(
    "This tool helps to retrieve broker version information.",
    [
        Option(
            "bootstrap-server", "REQUIRED: The server to connect to.", "server(s) to use for bootstrapping"
        ),
        Option(
            "command-config", "A file with properties of the admin client.", "command config property file"
        ),
        HELP,
        VERSION,
    ],
    old={"broker-list": Old("--bootstrap-server", "bootstrap-server")},
)


def main(arguments: Sequence[str]) -> int:
    """Print the API versions of every broker."""
    try:
        values = read_arguments(OPTIONS, arguments)
        values.required("bootstrap-server")
        cluster = Cluster.create(values.text("bootstrap-server") or "", values.text("command-config"))
        cluster.run(tell_versions, "awaitBrokers")
    except JavaError as error:
        return failed(str(error), error)
    return 0


async def tell_versions(session: Session) -> None:
    """Print the versions of each API that each broker supports."""
    from kafka_client.errors import MillstreamError

    for broker in (await session.admin.describe_cluster()).brokers:
        try:
            versions = (await session.client.connection(broker.node_id)).versions
        except MillstreamError as error:
            print(f"{_node(broker)} -> ERROR: {error}")
        else:
            print(f"{_node(broker)} -> (")
            print(*_lines(versions), sep=",\n")
            print(")")


def _node(broker: BrokerNode) -> str:
    return f"{broker.host}:{broker.port} (id: {broker.node_id} rack: {broker.rack or 'null'} isFenced: false)"


def _lines(versions: Mapping[int, tuple[int, int]]) -> Iterator[str]:
    expected = {key for key, api in APIS.items() if api.of_clients}
    for key in sorted(expected | versions.keys()):
        api = APIS.get(key)
        name = f"{api.name if api else 'UNKNOWN'}({key})"
        yield f"\t{name}: {_versions(versions[key], api) if key in versions else 'UNSUPPORTED'}"


def _versions(versions: tuple[int, int], api: Api | None) -> str:
    lowest, highest = versions
    shown = str(lowest) if lowest == highest else f"{lowest} to {highest}"
    if api is None:
        return shown
    if highest < api.lowest:
        return f"{shown} [unusable: node too old]"
    if lowest > api.highest:
        return f"{shown} [unusable: node too new]"
    return f"{shown} [usable: {min(highest, api.highest)}]"


app = tool(OPTIONS, main)
