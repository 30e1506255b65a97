"""Accounts through the SDK, of a real server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import topics
import topics.testing
from tests.client.rig import on_loop
from tests.server.accountrig import ADMIN_KEY, PASSWORD, Served, accounts_served
from topics import KeyStatus, Role, UserStatus, errors

ADA = "ada@example.org"


@asynccontextmanager
async def managed(directory: Path) -> AsyncIterator[tuple[Served, topics.Client]]:
    """A server that asks everybody, and a client that may manage it."""
    async with (
        accounts_served(directory, api_keys=ADMIN_KEY) as served,
        topics.connect(served.server.url, ADMIN_KEY) as client,
    ):
        yield served, client


@on_loop
async def test_a_key_from_its_making_to_its_end(tmp_path: Path) -> None:
    async with managed(tmp_path) as (served, client):
        until = datetime.now(UTC) + timedelta(days=90)
        made = await client.keys.create("ci", ["read", "write"], prefixes=["ci."], expires=until)
        assert (made.name, made.scopes, made.prefixes) == ("ci", ("read", "write"), ("ci.",))
        assert (made.status, made.warning) == (KeyStatus.ACTIVE, "")
        assert abs((made.expires_ts or 0) - until.timestamp() * 1000) < 2
        assert made.key not in repr(made) and made.key not in str(made.__rich_repr__())
        async with topics.connect(served.server.url, made.key) as other:
            await other.topic("ci.runs").write(1)
            with pytest.raises(errors.Forbidden):
                await other.topic("elsewhere").write(1)
            with pytest.raises(errors.Forbidden):
                await other.keys.list()
            assert [key.id for key in await client.keys.list()] == [made.id]
            assert (await client.keys.revoke(made.id)).status is KeyStatus.REVOKED
            with pytest.raises(errors.Unauthorized):
                await other.topic("ci.runs").write(2)
        with pytest.raises(errors.KeyNotFound):
            await client.keys.revoke("nobodys")
        with pytest.raises(errors.InvalidRequest, match="key must be a name or an id"):
            await client.keys.get("")
        with pytest.raises(errors.InvalidRequest, match="time zone"):
            await client.keys.create("x", expires=datetime.now())


@on_loop
async def test_a_user_from_the_invitation_to_the_end(tmp_path: Path) -> None:
    async with managed(tmp_path) as (served, client):
        await served.signed_up("root@example.org")
        made = await client.users.invite(ADA, "operator")
        assert (made.email, made.role, made.status) == (ADA, Role.OPERATOR, UserStatus.INVITED)
        assert made.link.startswith(f"{served.server.url}/set-up#")
        assert made.link not in repr(made) and made.link not in str(made.__rich_repr__())
        browser = served.browser()
        body = {"token": made.link.partition("#")[2], "password": PASSWORD}
        assert (await browser.post("/v1/auth/setup", body)).status == 201
        assert [user.email for user in await client.users.list()] == [ADA, "root@example.org"]
        assert (await client.users.get(made.id)).session_count == 1
        assert (await client.users.set_role(ADA, Role.VIEWER)).role is Role.VIEWER
        assert (await client.users.disable(ADA)).status is UserStatus.DISABLED
        assert (await browser.get("/v1/auth/me")).status == 401
        assert (await client.users.enable(ADA)).status is UserStatus.ACTIVE
        assert "/set-up#" in (await client.users.new_link(ADA)).link
        assert (await client.users.remove(ADA)).deleted
        with pytest.raises(errors.UserNotFound):
            await client.users.get(ADA)
        with pytest.raises(errors.LastAdmin):
            await client.users.remove("root@example.org")
        with pytest.raises(errors.InvalidRequest, match="role"):
            await client.users.invite(ADA, "king")


@on_loop
async def test_sessions_of_everybody_are_listed_and_ended(tmp_path: Path) -> None:
    async with managed(tmp_path) as (served, client):
        browser = await served.signed_up(ADA)
        (session,) = await client.sessions.list()
        assert (session.email, session.address) == (ADA, "127.0.0.1")
        assert (await client.sessions.end(session.id)).ended
        assert list(await client.sessions.list()) == []
        assert (await browser.get("/v1/auth/me")).status == 401
        with pytest.raises(errors.SessionNotFound):
            await client.sessions.end(session.id)


@on_loop
async def test_the_audit_log_is_searched_over_pages_and_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topics.client.auditlog.AUDIT_PAGE", 2)
    async with managed(tmp_path) as (_, client):
        for number in range(5):
            await client.keys.create(f"key {number}", "read", prefixes="a.")
        made = [entry async for entry in client.audit.search(action="create_key", outcome="done")]
        assert [entry.name for entry in made] == [f"key {number}" for number in (4, 3, 2, 1, 0)]
        assert {(entry.over, entry.outcome, entry.detail["scopes"][0]) for entry in made} == {("http", "done", "read")}
        assert made[0].detail["prefixes"] == ["a."]
        every = [entry async for entry in client.audit.search(action="create_key")]
        assert len(every) == 10 and every[0].previous == every[1].hash
        assert [entry.name async for entry in client.audit.search("KEY 3")] == ["key 3"] * 2
        assert [entry async for entry in client.audit.search(who="nobody", name="x", outcome="done")] == []
        later = datetime.now(UTC) + timedelta(hours=1)
        assert [entry async for entry in client.audit.search(since=later)] == []
        assert len([entry async for entry in client.audit.search(action="create_key", until=later)]) == 10
        verdict = await client.audit.verify()
        assert (verdict.intact, verdict.problem, verdict.last_hash) == (True, "", made[0].hash)


def test_the_same_without_asyncio() -> None:
    with topics.testing.running_server(auth=True, api_keys=ADMIN_KEY) as server, server.client(ADMIN_KEY) as client:
        made = client.keys.create("ci")
        assert [key.name for key in client.keys.list()] == ["ci"] and client.keys.revoke(made.id).revoked_ts
        assert client.users.invite(ADA).email == ADA and client.users.get(ADA).role is Role.VIEWER
        assert list(client.sessions.list()) == []
        assert next(client.audit.search(action="invite_user")).name == ADA
        assert client.audit.verify().intact


def test_an_engine_in_process_says_where_accounts_are(tmp_path: Path) -> None:
    with topics.sync.open(tmp_path) as client:
        for look in (lambda: client.keys, lambda: client.users, lambda: client.sessions, lambda: client.audit):
            with pytest.raises(errors.InvalidRequest, match=r"belong to a server.*topics\.connect"):
                look()
