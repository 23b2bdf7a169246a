"""An HTTP server on loopback, of which each test says how it answers."""

import contextlib
import json
import socket
import threading

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.support.waiting import wait_for


class Api:
    """A server that keeps its requests; `answer(request)` gives a response, or a document for one."""

    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}"
        self.requests = []
        self.answer = lambda request: []

    async def respond(self, request):
        body = await request.body()
        request.scope["text"] = body.decode()
        self.requests.append(request)
        answer = self.answer(request)
        return answer if isinstance(answer, Response) else JSONResponse(answer)

    def bodies(self):
        return [json.loads(request.scope["text"]) for request in self.requests]


@pytest.fixture(scope="session")
def _served():
    with contextlib.closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        api = Api(listener.getsockname()[1])

        async def respond(request):
            return await api.respond(request)

        methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
        app = Starlette(routes=[Route("/{path:path}", respond, methods=methods)])
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        wait_for(lambda: server.started)
        yield api
        server.should_exit = True
        thread.join()


@pytest.fixture
def api(_served):
    _served.requests.clear()
    _served.answer = lambda request: []
    return _served
