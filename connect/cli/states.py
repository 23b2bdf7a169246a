"""`millstream connect list`, `status`, `pause`, `resume`, `stop`, `restart` and `delete`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from connect.cli.output import print_json, print_table
from connect.cli.remote import DEFAULT_URL, AsJson, Names, RemoteWorker, Url, told_errors

_COLUMNS = ("connector", "type", "task", "state", "worker", "reason")


def list_connectors(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the names of a worker's connectors."""
    with told_errors():
        names: list[str] = sorted(RemoteWorker(url).call("GET", "connectors"))
    if as_json:
        print_json(names)
    else:
        for name in names:
            typer.echo(name)


def status(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="a connector; all without it")] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show the states of connectors and tasks, with the reason of a failure."""
    with told_errors():
        worker = RemoteWorker(url)
        if name is None:
            expanded = worker.call("GET", "connectors", query={"expand": "status"})
            statuses = [each["status"] for each in expanded.values()]
        else:
            statuses = [worker.call("GET", "connectors", name, "status")]
    if as_json:
        print_json(statuses if name is None else statuses[0])
    else:
        print_table(_COLUMNS, (row for each in statuses for row in _rows(each)))


def pause(names: Names, url: Url = DEFAULT_URL) -> None:
    """Pause connectors and their tasks, which keep their resources."""
    _each(url, names, "PUT", "pause", "paused")


def resume(names: Names, url: Url = DEFAULT_URL) -> None:
    """Resume connectors that are paused or stopped."""
    _each(url, names, "PUT", "resume", "resumed")


def stop(names: Names, url: Url = DEFAULT_URL) -> None:
    """Stop connectors and remove their tasks; their configs and offsets remain."""
    _each(url, names, "PUT", "stop", "stopped")


def restart(
    name: Annotated[str, typer.Argument(metavar="NAME", help="a connector")],
    task: Annotated[int | None, typer.Option(min=0, help="restart this task alone")] = None,
    include_tasks: Annotated[bool, typer.Option(help="restart the connector's tasks too")] = False,
    only_failed: Annotated[bool, typer.Option(help="restart only what has failed")] = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Restart a connector, or one of its tasks."""
    if task is not None and (include_tasks or only_failed):
        raise typer.BadParameter("--task goes without --include-tasks and --only-failed")
    with told_errors():
        worker = RemoteWorker(url)
        if task is not None:
            worker.call("POST", "connectors", name, "tasks", str(task), "restart")
        else:
            flags = {"includeTasks": include_tasks, "onlyFailed": only_failed}
            query = {key: "true" for key, value in flags.items() if value}
            worker.call("POST", "connectors", name, "restart", query=query)
    typer.echo(f"{name} restarted" if task is None else f"{name} task {task} restarted")


def delete(names: Names, url: Url = DEFAULT_URL) -> None:
    """Delete connectors; their offsets remain."""
    with told_errors():
        worker = RemoteWorker(url)
        worker.each(names, lambda name: worker.call("DELETE", "connectors", name), "deleted")


def _each(url: str, names: list[str], method: str, path: str, verb: str) -> None:
    with told_errors():
        worker = RemoteWorker(url)
        worker.each(names, lambda name: worker.call(method, "connectors", name, path), verb)


def _rows(document: Mapping[str, Any]) -> Iterator[tuple[object, ...]]:
    """Yield a row for a connector and one for each task."""
    connector = document["connector"]
    yield (document["name"], document.get("type"), None, *_state(connector))
    for task in document["tasks"]:
        yield (document["name"], None, task["id"], *_state(task))


def _state(row: Mapping[str, Any]) -> tuple[object, ...]:
    lines = [line for line in str(row.get("trace") or "").splitlines() if line.strip()]
    # Python names the error in the last line of a trace, Java in the first.
    reason = "" if not lines else lines[-1] if lines[0].startswith("Traceback") else lines[0]
    return row["state"], row["worker_id"], reason.strip()
