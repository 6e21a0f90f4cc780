"""An extender as a real HTTP server on a free port, for tests."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = Callable[[Any], Any]
"""From the question's document to the answer's; bytes are sent as they are, an int is an HTTP status."""


class ExtenderServer:
    """Answers by verb. `asked` are the verbs and documents in order; a verb without a reply is answered with 404."""

    def __init__(self) -> None:
        self.replies: dict[str, Reply] = {}
        self.asked: list[tuple[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.connections = 0
        self.released = threading.Event()
        """Hanging answers go on when it is set."""
        self.url = ""

    def verbs(self) -> list[str]:
        return [verb for verb, _ in self.asked]

    def bodies(self, verb: str) -> list[Any]:
        return [body for name, body in self.asked if name == verb]

    def hang(self, _question: Any) -> Any:
        self.released.wait(30)
        return {}


@contextmanager
def serving() -> Iterator[ExtenderServer]:
    extender = ExtenderServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            extender.connections += 1
            super().setup()

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"]))
            verb = self.path.lstrip("/")
            extender.asked.append((verb, json.loads(text)))
            extender.headers.append({name.lower(): value for name, value in self.headers.items()})
            reply = extender.replies.get(verb)
            answer = 404 if reply is None else reply(extender.asked[-1][1])
            status = answer if isinstance(answer, int) else 200
            body = answer if isinstance(answer, bytes) else json.dumps(None if status != 200 else answer).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                self.close_connection = True  # who asked has given up

        def log_message(self, *_: Any) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """Who asked has hung up."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    extender.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield extender
    finally:
        extender.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
