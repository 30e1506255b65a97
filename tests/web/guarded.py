"""A server that asks everybody who they are, and people in browsers who sign in to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, Final

from playwright.sync_api import BrowserContext

from tests.e2e.served import Caller, Served, served
from topics import sync

ADMIN_KEY: Final = "root-key-of-the-tests"
ADA: Final = "ada@example.org"
PASSWORD: Final = "correct horse battery"
SESSION_S: Final = 300
"""Half of how long a session goes without being refreshed, which two browsers cannot do with the same cookies."""


class Guarded:
    def __init__(self, server: Served, directory: Path) -> None:
        self.server = server
        self.directory = directory
        self.url = server.url
        self._sessions: dict[str, tuple[float, list[Any]]] = {}

    def client(self) -> sync.Client:
        """One that may do everything."""
        return sync.connect(self.url, ADMIN_KEY)

    def ask(self, method: str, path: str, body: object = None, key: str | None = ADMIN_KEY) -> tuple[int, Any]:
        with Caller(self.url, key) as caller:
            return caller.ask(method, path, body)

    def add(self, email: str, role: str) -> str:
        """Somebody with a password, who has not signed in."""
        with self.client() as client:
            token = client.users.invite(email, role).link.partition("#")[2]
            status, _ = self.ask("POST", "/v1/auth/setup", {"token": token, "password": PASSWORD}, None)
            assert status == 201
            for session in client.sessions.list():
                if session.email == email:
                    client.sessions.end(session.id)
        return email

    def let_in(self, context: BrowserContext, email: str = ADA) -> None:
        """Give a browser a session that was begun before, where it does not matter which one it has."""
        began, cookies = self._sessions.get(email, (-SESSION_S, []))
        if monotonic() - began < SESSION_S:
            context.add_cookies(cookies)
            return
        self.sign_in(context, email)
        self._sessions[email] = (monotonic(), context.cookies())

    def sign_in(self, context: BrowserContext, email: str = ADA, password: str = PASSWORD) -> str:
        """As the page does it, without the page; the CSRF token of the session."""
        answer = context.request.post(f"{self.url}/v1/auth/login", data={"email": email, "password": password})
        assert answer.status == 200, answer.text()
        token: str = answer.json()["csrf_token"]
        return token


@contextmanager
def guarded_server(directory: Path, *flags: str) -> Iterator[Guarded]:
    """With one user, who is an admin."""
    # Proxies are believed, so that a test can come from an address of its own and be the only one who waits.
    variables = {"TOPICS_AUTH": "1", "TOPICS_API_KEYS": ADMIN_KEY, "TOPICS_FORWARDED": "1"}
    with served(directory, *flags, variables=variables) as server:
        guarded = Guarded(server, directory)
        token = set_up_link(server).partition("#")[2]
        body = {"token": token, "email": ADA, "password": PASSWORD}
        assert guarded.ask("POST", "/v1/auth/setup", body, None)[0] == 201
        yield guarded


def set_up_link(server: Served) -> str:
    """What the first start put into a file."""
    said = [line["file"] for line in server.said if line["event"] == "set up"]
    return Path(said[0] if said else server.wait_for("set up")["file"]).read_text().strip()


def cookie_values(context: BrowserContext) -> dict[str, str]:
    return {each["name"]: each["value"] for each in context.cookies()}
