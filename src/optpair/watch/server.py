"""The server of live pages, for this machine alone unless told otherwise.

On loopback, reading needs no token; everywhere else it does. Orders always need it, and must come
by POST from a page of this server: other sites can neither read answers nor send orders, even if
their names are made to resolve to this machine.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import socket
import socketserver
import threading
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from optpair.watch import page
from optpair.watch.boards import Board, Pace
from optpair.watch.sources import Source

LOOPBACK, PORT = "127.0.0.1", 8765
PATIENCE = 25.0  # seconds that a browser waits for news
SILENCE = 30.0  # seconds that a browser may keep a connection open in silence
CONNECTIONS = 100  # at once; any more are closed
LONGEST = 4096  # bytes of a form

HEADERS = {
    "Content-Security-Policy": page.POLICY,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers send no Origin with a form
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Hall:
    """The boards of some searches, each with a thread that follows it until `close`."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.changed = threading.Condition()
        pace = Pace()
        self.boards = [Board(source, pace, self.changed) for source in sources]
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=board.follow, args=(self._over,), daemon=True)
            for board in self.boards
        ]

    def open(self) -> None:
        """Start to follow the searches."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop following. Requests that wait for news are answered."""
        self._over.set()
        for board in self.boards:
            board.wake()
        with self.changed:
            self.changed.notify_all()
        for thread in self._threads:
            thread.join(5.0)  # a storage that is away may keep one for longer

    def version(self, index: int | None) -> str:
        """The version of a search's page, or of the page of all searches for None."""
        if index is not None:
            return self.boards[index].version
        together = " ".join(board.version for board in self.boards)
        return hashlib.sha256(together.encode()).hexdigest()[:16]

    def want(self, index: int | None) -> None:
        """Note that a page is open."""
        for board in self.boards if index is None else [self.boards[index]]:
            board.want()

    def wait(self, index: int | None, version: str) -> bool:
        """Wait for a page to change from this version; whether it did."""
        with self.changed:
            return self.changed.wait_for(
                lambda: self._over.is_set() or self.version(index) != version, PATIENCE
            )


class Server(ThreadingHTTPServer):
    """Live pages over HTTP; `url` is the address, with the token."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, sources: Sequence[Source], host: str = LOOPBACK, port: int = 0) -> None:
        self.hall = Hall(sources)
        self.token = secrets.token_urlsafe(24)
        self.given = host
        address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        self.address_family = address[0]
        self.local = _is_loopback(str(address[4][0]))
        self._room = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__((str(address[4][0]), port), Handler)

    @property
    def url(self) -> str:
        """The address to open."""
        host = f"[{self.given}]" if ":" in self.given else self.given
        return f"http://{host}:{self.server_port}/?token={self.token}"

    def server_bind(self) -> None:
        """Bind, without the look-up of a name that the standard library makes here."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.given, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own, up to `CONNECTIONS` at once."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and make room."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a browser that goes away is normal."""

    def knows_host(self, host: str) -> bool:
        """Whether a request was meant for this server: anybody's name may resolve to it."""
        name, port = _host_of(host)
        if port != self.server_port:
            return False
        if name == "localhost" or _is_loopback(name):
            return True
        if self.local:
            return False
        own = {self.given.lower(), socket.gethostname().lower()}
        return name in own or _is_address(name)


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    server_version, sys_version = "optpair", ""
    timeout = SILENCE

    def do_GET(self) -> None:
        """Answer with a page, now or when it has changed."""
        if not self.server.knows_host(self.headers.get("Host", "")):
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "this server has another name")
            return
        parts = urlsplit(self.path)
        asked = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        trusted = self._is_token(asked.get("token", ""))
        if not trusted and ("token" in asked or not self.server.local):
            self._refuse(HTTPStatus.FORBIDDEN, "open the address that optpair watch has printed")
            return
        place, index = self._place(parts.path)
        if place == "":
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")
            return
        hall, reader = self.server.hall, page.Reader(self.server.token if trusted else "")
        hall.want(index)
        if place == "wait" and not hall.wait(index, asked.get("version", "")):
            hall.want(index)
            self._answer(HTTPStatus.NO_CONTENT)
            return
        if index is None:
            text = page.several(hall.boards, reader, hall.version(None))
        else:
            text = page.one(hall.boards[index], index, reader, len(hall.boards) == 1)
        self._answer(HTTPStatus.OK, text)

    def do_POST(self) -> None:
        """Pass an order on to the workers of a study."""
        host = self.headers.get("Host", "")
        if not self.server.knows_host(host):
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "this server has another name")
            return
        origin = self.headers.get("Origin")
        site = self.headers.get("Sec-Fetch-Site", "same-origin")
        if (origin is not None and origin != f"http://{host}") or site != "same-origin":
            self._refuse(HTTPStatus.FORBIDDEN, "orders must come from a page of this server")
            return
        form = self._form()
        if not self._is_token(form.get("token", "")):
            self._refuse(HTTPStatus.FORBIDDEN, "an order needs the token that was printed")
            return
        place, index = self._place(urlsplit(self.path).path)
        if place != "order" or index is None:
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing to order here")
            return
        board = self.server.hall.boards[index]
        try:
            board.source.give(form.get("order", ""))
        except Exception as error:
            self._refuse(HTTPStatus.CONFLICT, f"the order was not given: {error}")
            return
        board.hurry()
        self._answer(HTTPStatus.SEE_OTHER, Location=f"/study/{index}?token={self.server.token}")

    def _place(self, path: str) -> tuple[str, int | None]:
        """What a path means: "page", "wait", "order" or "" for nothing, and which search."""
        boards = len(self.server.hall.boards)
        words = [word for word in path.split("/") if word]
        if words in ([], ["wait"]):
            return "".join(words) or "page", 0 if boards == 1 else None
        known = len(words) in (2, 3) and words[0] == "study" and words[1] in map(str, range(boards))
        action = words[2] if len(words) == 3 else "page"
        if not known or action not in ("page", "wait", "order"):
            return "", None
        return action, int(words[1])

    def _form(self) -> dict[str, str]:
        try:
            length = min(int(self.headers.get("Content-Length", "0")), LONGEST)
            found = parse_qs(self.rfile.read(max(length, 0)).decode())
        except ValueError:
            return {}
        return {key: values[-1] for key, values in found.items()}

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.server.token.encode())

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self._answer(status, f"{why}\n", kind="text/plain")

    def _answer(
        self, status: HTTPStatus, text: str = "", kind: str = "text/html", **more: str
    ) -> None:
        content = text.encode()
        self.send_response(status)
        for name, value in {**HEADERS, **more}.items():
            self.send_header(name, value)
        if status != HTTPStatus.NO_CONTENT:
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: addresses contain the token."""


def _host_of(header: str) -> tuple[str, int]:
    """The name and the port of a Host header; empty if it makes no sense."""
    try:
        parts = urlsplit(f"http://{header}")
        return (parts.hostname or "").lower(), parts.port or 80
    except ValueError:
        return "", 0


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True


def _is_loopback(name: str) -> bool:
    return _is_address(name) and ipaddress.ip_address(name.partition("%")[0]).is_loopback
