"""`kafka-cluster`: the cluster's id and its brokers' endpoints, as ClusterTool has them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from millstream.kafka_tools.broker_api_versions import tell_versions
from millstream.kafka_tools.java.java_errors import JavaError
from millstream.kafka_tools.options.arguments import Ended, Options
from millstream.kafka_tools.running import Cluster, failed, tool

if TYPE_CHECKING:
    from millstream.kafka_tools.options.argparse4j import Parser
    from millstream.terminal.session import Session

OPTIONS = Options("The Kafka cluster tool.", [])


def main(arguments: Sequence[str]) -> int:
    """Carry out the command."""
    values = _parser().read(arguments)
    if values.config is not None and values.command_config is not None:
        raise Ended(1, "--config and --command-config cannot be specified together.")
    work: Callable[[Session], Awaitable[None]] = _tell_id
    if values.command == "list-endpoints":
        work = _tell_endpoints
    elif values.command == "unregister":
        work = partial(_unregister, broker=values.id)
    elif values.command == "unregister-controller":
        work = partial(_unregister_controller, controller=values.id)
    elif values.command == "api-versions":
        work = tell_versions
    try:
        if values.config is not None:
            print(
                "Option --config has been deprecated and will be removed in a future version. "
                "Use --command-config instead."
            )
        if values.bootstrap_controller is not None:
            raise _no_controllers()
        Cluster.create(values.bootstrap_server, values.command_config or values.config).run(work, "listNodes")
    except JavaError as error:
        return failed(error.caught, error)
    return 0


def _parser() -> Parser:
    from millstream.kafka_tools.options.argparse4j import Parser, integer

    parser = Parser("kafka-cluster", OPTIONS.purpose)
    commands = parser.add_subparsers(dest="command")
    added = {
        "cluster-id": commands.add_parser("cluster-id", help="Tell the cluster's id."),
        "unregister": commands.add_parser("unregister", help="Unregister a broker."),
        "unregister-controller": commands.add_parser(
            "unregister-controller", help="Unregister a controller."
        ),
        "list-endpoints": commands.add_parser("list-endpoints", help="List the brokers' endpoints."),
        "api-versions": commands.add_parser("api-versions", help="Tell which APIs brokers have."),
    }
    for command in added.values():
        command.require_one(
            (("--bootstrap-server", "-b"), {"help": "Brokers to connect to: host:port,…"}),
            (("--bootstrap-controller", "-C"), {"help": "Not taken: give --bootstrap-server."}),
        )
        command.add_argument("--config", help="Deprecated: --command-config.")
        command.add_argument("--command-config", "-c", help="A file with properties of the admin client.")
    added["unregister"].require("--id", "-i", type=integer, help="The broker's id.")
    added["unregister-controller"].require("--id", "-i", type=integer, help="The controller's id.")
    added["list-endpoints"].add_argument(
        "--include-fenced-brokers", action="store_true", help="List brokers that are fenced, too."
    )
    return parser


def _no_controllers() -> JavaError:
    error = JavaError(
        "org.apache.kafka.common.errors.UnsupportedEndpointTypeException",
        "--bootstrap-controller is not taken: this client talks to brokers alone",
    )
    error.add_note("note: give --bootstrap-server with the address of a broker")
    return error


async def _tell_id(session: Session) -> None:
    print(f"Cluster ID: {(await session.admin.describe_cluster()).cluster_id}")


async def _tell_endpoints(session: Session) -> None:
    brokers = (await session.admin.describe_cluster()).brokers
    host = max((len(broker.host) for broker in brokers), default=100)
    rack = max((len(broker.rack) for broker in brokers if broker.rack is not None), default=10)

    def row(*cells: object) -> str:
        widths = (10, host, 10, rack, 10, 15)
        return " ".join(f"{cell!s:<{width}}" for cell, width in zip(cells, widths, strict=True))

    print(row("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"))
    for broker in brokers:
        shown = "null" if broker.rack is None else broker.rack
        print(row(broker.node_id, broker.host, broker.port, shown, "unfenced", "broker"))


async def _unregister(session: Session, broker: int) -> None:
    """Unregister a broker, which only KRaft clusters support."""
    from kafka_client.cluster.answers import refusal
    from kafka_client.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

    cluster = await session.admin.describe_cluster()
    connection = await session.client.connection(cluster.controller_id)
    if UnregisterBrokerRequest.API_KEY not in connection.versions:
        print("The target cluster does not support the broker unregistration API.")
        return
    request = UnregisterBrokerRequest(broker_id=broker)
    response: UnregisterBrokerResponse = await session.client.request(request)
    if response.error_code:
        raise refusal(response.error_code, f"broker {broker}", str(broker), response.error_message)
    print(f"Broker {broker} is no longer registered.")


async def _unregister_controller(session: Session, controller: int) -> None:
    """Unregister a controller, which only KRaft clusters support."""
    from kafka_client.cluster.answers import refusal
    from kafka_client.wire.messages.unregister_controller import (
        UnregisterControllerRequest,
        UnregisterControllerResponse,
    )

    cluster = await session.admin.describe_cluster()
    connection = await session.client.connection(cluster.controller_id)
    if UnregisterControllerRequest.API_KEY not in connection.versions:
        print("The target cluster does not support the controller unregistration API.")
        return
    request = UnregisterControllerRequest(controller_id=controller)
    response: UnregisterControllerResponse = await session.client.request(request)
    if response.error_code:
        raise refusal(
            response.error_code, f"controller {controller}", str(controller), response.error_message
        )
    print(f"Controller {controller} is no longer registered.")


app = tool(OPTIONS, main)
