"""People: the first one, invitations, signing in and out; and whoever tries to get in some other way."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from tests.client.rig import on_loop
from tests.server.accountrig import ADMIN_KEY, PASSWORD, Browser, Served, accounts_served
from tests.server.api import Api, serving
from tests.server.httprig import Caller
from topics.server.websessions import ACCESS_MS, GRACE_MS, SESSION_MS

ADA = "ada@example.org"


async def sign_in(served: Served, password: str = PASSWORD, email: str = ADA, **headers: str) -> tuple[Browser, int]:
    browser = served.browser()
    answer = await browser.post("/v1/auth/login", {"email": email, "password": password}, **headers)
    return browser, answer.status


# ---- the first user


@on_loop
async def test_the_link_makes_the_first_user_once(tmp_path: Path) -> None:
    async with accounts_served(tmp_path) as served:
        assert (await served.api.get("/v0/topics")).refusal == (401, "unauthorized")
        browser = await served.signed_up("Ada@Example.org")
        me = (await browser.get("/v1/auth/me")).body
        assert (me["kind"], me["name"], me["user"]["role"]) == ("user", ADA, "admin")
        token = served.server.set_up_link.partition("/set-up#")[2]
        again = await served.browser().post(
            "/v1/auth/setup", {"token": token, "email": "e@x.org", "password": PASSWORD}
        )
        assert again.status == 401
        assert len(served.accounts.users) == 1
    async with accounts_served(tmp_path) as served:
        assert served.server.set_up_link == ""
        assert (await sign_in(served))[1] == 200


@on_loop
async def test_the_link_is_good_for_an_hour(tmp_path: Path) -> None:
    async with accounts_served(tmp_path) as served:
        token = served.server.set_up_link.partition("/set-up#")[2]
        served.clock.ahead_ms = 3_600_000
        body = {"token": token, "email": ADA, "password": PASSWORD}
        assert (await served.browser().post("/v1/auth/setup", body)).status == 401


@on_loop
@pytest.mark.parametrize(
    ("fields", "field"),
    [({"password": "short"}, "password"), ({"password": "aaaaaaaaaaaa"}, "password"), ({"email": "x"}, "email")],
)
async def test_a_set_up_that_is_refused_can_be_tried_again(tmp_path: Path, fields: dict[str, str], field: str) -> None:
    async with accounts_served(tmp_path) as served:
        token = served.server.set_up_link.partition("/set-up#")[2]
        body = {"token": token, "email": ADA, "password": PASSWORD} | fields
        refused = await served.browser().post("/v1/auth/setup", body)
        assert (refused.status, refused.error["detail"]["field"]) == (400, field)
        assert fields[field] not in refused.error["message"] or field == "email"
        await served.signed_up()


@on_loop
async def test_a_link_says_whom_it_is_for_and_stays_good(tmp_path: Path) -> None:
    async with accounts_served(tmp_path) as served:
        first = {"token": served.server.set_up_link.partition("/set-up#")[2]}
        answer = (await served.browser().post("/v1/auth/link", first)).body
        assert answer["first"] and "email" not in answer and answer["expires_ts"] > served.clock.now_ms()
        admin = await served.signed_up()
        assert (await served.browser().post("/v1/auth/link", first)).status == 401
        invited = (await admin.post("/v1/users", {"email": "eve@example.org"})).body
        assert invited["link"].startswith("/set-up#")
        link = {"token": invited["link"].partition("#")[2]}
        answer = (await served.browser().post("/v1/auth/link", link)).body
        assert (answer["first"], answer["email"]) == (False, "eve@example.org")
        assert answer["expires_ts"] == invited["link_expires_ts"]
        await admin.call("PATCH", f"/v1/users/{invited['id']}", {"disabled": True})
        assert (await served.browser().post("/v1/auth/link", link)).status == 401
        await admin.call("PATCH", f"/v1/users/{invited['id']}", {"disabled": False})
        served.clock.ahead_ms = invited["link_expires_ts"] - served.clock.now_ms()
        assert (await served.browser().post("/v1/auth/link", link)).status == 401


@on_loop
async def test_who_guesses_links_waits(tmp_path: Path) -> None:
    async with accounts_served(tmp_path) as served:
        served.clock.stand_still()
        browser = served.browser()
        said = [(await browser.post("/v1/auth/link", {"token": f"guess-{n}"})).status for n in range(32)]
        assert said == [401] * 30 + [429] * 2
        elsewhere = await browser.post("/v1/auth/link", {"token": "x"}, Origin="http://elsewhere.example")
        assert elsewhere.status == 403


# ---- roles


@on_loop
async def test_roles_are_scopes(tmp_path: Path) -> None:
    async with accounts_served(tmp_path) as served:
        admin = await served.signed_up()
        viewer = await served.invited(admin, "viewer@x.org", "viewer")
        operator = await served.invited(admin, "operator@x.org", "operator")
        write = {"records": [{"data": 1}]}
        assert (await viewer.get("/v0/topics")).status == 200
        assert (await viewer.post("/v0/topics/t", write)).status == 403
        assert (await operator.post("/v0/topics/t", write)).status == 201
        assert (await operator.call("PUT", "/v0/topics/t", {})).status == 403
        assert (await operator.get("/v1/users")).status == 403
        assert (await admin.call("PUT", "/v0/topics/t", {})).status == 200
        assert (await operator.call("DELETE", "/v0/topics/t")).status == 200
        user_id = (await viewer.get("/v1/auth/me")).body["user"]["id"]
        assert (await admin.call("PATCH", f"/v1/users/{user_id}", {"role": "operator"})).body["role"] == "operator"
        assert (await viewer.post("/v0/topics/t", write)).status == 201
        assert (await admin.call("PATCH", f"/v1/users/{user_id}", {"disabled": True})).body["status"] == "disabled"
        assert (await viewer.get("/v0/topics")).status == 401
        assert (await sign_in(served, email="viewer@x.org"))[1] == 401


@on_loop
async def test_an_admin_stays_and_cannot_lock_themselves_out(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        admin = await served.signed_up()
        for method, body in (("PATCH", {"role": "viewer"}), ("PATCH", {"disabled": True}), ("DELETE", None)):
            assert (await admin.call(method, f"/v1/users/{ADA}", body)).status == 403
        served.api.key = ADMIN_KEY
        refused = await served.api.delete(f"/v1/users/{ADA}")
        assert refused.status == 412 and refused.error["reason"] == "last_admin"
        await served.invited(admin, "eve@x.org", "admin")
        assert (await served.api.delete(f"/v1/users/{ADA}")).body["deleted"] is True
        assert (await admin.get("/v0/topics")).status == 401


# ---- cookies


@on_loop
async def test_cookies_are_out_of_reach(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, forwarded=1) as served:
        await served.signed_up()
        browser = served.browser()
        answer = await browser.post("/v1/auth/login", {"email": ADA, "password": PASSWORD})
        assert answer.headers["cache-control"] == "no-store"
        by_name = {cookie.partition("=")[0]: cookie for cookie in browser.set_cookies}
        assert set(by_name) == {"topics_session", "topics_refresh", "topics_csrf"}
        for name, cookie in by_name.items():
            parts = cookie.split("; ")
            assert "SameSite=Strict" in parts and "Secure" not in parts
            assert ("HttpOnly" in parts) == (name != "topics_csrf")
        assert "Path=/v1/auth" in by_name["topics_refresh"].split("; ")
        await browser.post("/v1/auth/login", {"email": ADA, "password": PASSWORD}, X_Forwarded_Proto="https")
        assert all("Secure" in cookie.split("; ") for cookie in browser.set_cookies)


@on_loop
async def test_a_forged_or_old_cookie_is_none(tmp_path: Path) -> None:
    async with accounts_served(tmp_path) as served:
        browser = await served.signed_up()
        good = browser.cookies["topics_session"]
        head, claims, signature = good.split(".")
        none_alg = "eyJhbGciOiJub25lIiwia2lkIjoieCJ9"
        refresh = browser.cookies["topics_refresh"]
        for forged in (f"{head}.{claims}.", f"{none_alg}.{claims}.", f"{head}.{claims[:-2]}.{signature}", "x", refresh):
            browser.cookies["topics_session"] = forged
            assert (await browser.get("/v0/topics")).status == 401, forged
        browser.cookies["topics_session"] = good
        assert (await browser.get("/v0/topics")).status == 200
        served.clock.ahead_ms = ACCESS_MS + 1000
        assert (await browser.get("/v0/topics")).status == 401


@on_loop
async def test_a_sign_in_never_takes_over_a_session_that_came_with_it(tmp_path: Path) -> None:
    async with accounts_served(tmp_path) as served:
        mallory = await served.signed_up()
        fixed = dict(mallory.cookies)
        victim = served.browser()
        victim.cookies = dict(fixed)
        answer = await victim.post("/v1/auth/login", {"email": ADA, "password": PASSWORD})
        assert answer.status == 200 and victim.cookies["topics_session"] != fixed["topics_session"]
        sessions = (await victim.get("/v1/auth/sessions")).body["sessions"]
        assert len(sessions) == 2 and len({session["id"] for session in sessions}) == 2


# ---- CSRF and other origins


@on_loop
async def test_what_changes_something_needs_the_csrf_token(tmp_path: Path) -> None:
    async with accounts_served(tmp_path) as served:
        browser = await served.signed_up()
        write = {"records": [{"data": 1}]}
        stranger = await served.invited(browser, "eve@x.org", "operator")
        for token in ("", "wrong", stranger.cookies["topics_csrf"]):
            browser.csrf = token
            refused = await browser.post("/v0/topics/t", write)
            assert refused.refusal == (403, "forbidden") and "x-csrf-token" in refused.error["message"]
            assert (await browser.call("DELETE", "/v0/topics/t")).status == 403
            assert (await browser.post("/v1/auth/refresh")).status == 403
            assert (await browser.post("/v1/auth/logout")).status == 403
        assert (await browser.get("/v0/topics")).status == 200
        browser.csrf = None
        assert (await browser.post("/v0/topics/t", write)).status == 201


@on_loop
async def test_a_page_of_another_origin_has_no_session(tmp_path: Path) -> None:
    async with accounts_served(tmp_path) as served:
        browser = await served.signed_up()
        for origin in ("http://evil.example", "http://localhost:81", "null"):
            assert (await browser.get("/v0/topics", Origin=origin)).status == 403
            assert (await sign_in(served, Origin=origin))[1] == 403
        assert (await browser.get("/v0/topics", Origin="http://localhost")).status == 200


@on_loop
async def test_a_key_needs_no_csrf_token(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        browser = await served.signed_up()
        browser.csrf = ""
        answer = await browser.post("/v0/topics/t", {"records": [{"data": 1}]}, Authorization=f"Bearer {ADMIN_KEY}")
        assert answer.status == 201


# ---- refreshing


@on_loop
async def test_a_session_goes_on_by_being_refreshed(tmp_path: Path) -> None:
    async with accounts_served(tmp_path) as served:
        browser = await served.signed_up()
        for _ in range(3):
            served.clock.ahead_ms += ACCESS_MS + 1000
            assert (await browser.get("/v0/topics")).status == 401
            assert (await browser.post("/v1/auth/refresh")).status == 200
            assert (await browser.get("/v0/topics")).status == 200
        served.clock.ahead_ms += SESSION_MS + 1000
        assert (await browser.post("/v1/auth/refresh")).status == 401


@on_loop
async def test_a_refresh_cookie_that_was_copied_ends_the_session(tmp_path: Path) -> None:
    async with accounts_served(tmp_path) as served:
        browser = await served.signed_up()
        thief = served.browser()
        thief.cookies = dict(browser.cookies)
        assert (await browser.post("/v1/auth/refresh")).status == 200
        beside = await thief.post("/v1/auth/refresh")
        assert beside.status == 200 and "topics_refresh" not in "".join(thief.set_cookies)
        served.clock.ahead_ms = GRACE_MS + 1000
        refused = await thief.post("/v1/auth/refresh")
        assert refused.status == 401 and "from elsewhere" in refused.error["message"]
        assert (await browser.get("/v0/topics")).status == 401
        assert (await browser.post("/v1/auth/refresh")).status == 401


# ---- ending


@on_loop
async def test_signing_out_ends_the_session_for_every_copy(tmp_path: Path) -> None:
    async with accounts_served(tmp_path) as served:
        browser = await served.signed_up()
        copy = served.browser()
        copy.cookies = dict(browser.cookies)
        assert (await browser.post("/v1/auth/logout")).body["signed_out"] is True
        assert browser.cookies == {}
        assert (await copy.get("/v0/topics")).status == 401
        assert (await copy.post("/v1/auth/refresh")).status == 401
        assert (await browser.post("/v1/auth/logout")).body["signed_out"] is False


@on_loop
async def test_sessions_are_listed_and_ended(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        browser = await served.signed_up()
        other, _ = await sign_in(served, User_Agent="Other <b>browser</b>")
        viewer = await served.invited(browser, "v@x.org", "viewer")
        sessions = (await browser.get("/v1/auth/sessions")).body["sessions"]
        assert [session["current"] for session in sessions] == [True, False]
        assert sessions[1]["agent"] == "Other <b>browser</b>" and sessions[1]["address"] == "127.0.0.1"
        assert (await viewer.call("DELETE", f"/v1/auth/sessions/{sessions[1]['id']}")).status == 403
        assert (await browser.call("DELETE", f"/v1/auth/sessions/{sessions[1]['id']}")).body["ended"] is True
        assert (await other.get("/v0/topics")).status == 401
        served.api.key = ADMIN_KEY
        assert len((await served.api.get("/v1/auth/sessions")).body["sessions"]) == 2
        assert (await served.api.delete("/v1/auth/sessions/none")).status == 404


@on_loop
async def test_a_password_is_changed_with_the_old_one(tmp_path: Path) -> None:
    async with accounts_served(tmp_path) as served:
        browser = await served.signed_up()
        other, _ = await sign_in(served)
        new = "another horse entirely"
        wrong = {"current_password": "not the password", "new_password": new}
        assert (await browser.post("/v1/auth/password", wrong)).status == 403
        answer = await browser.post("/v1/auth/password", {"current_password": PASSWORD, "new_password": new})
        assert answer.status == 200
        assert (await browser.get("/v0/topics")).status == 200
        assert (await other.get("/v0/topics")).status == 401
        assert [(await sign_in(served, password))[1] for password in (PASSWORD, new)] == [401, 200]


@on_loop
async def test_who_forgot_the_password_gets_a_link(tmp_path: Path) -> None:
    async with accounts_served(tmp_path) as served:
        admin = await served.signed_up()
        bob = await served.invited(admin, "bob@x.org", "viewer")
        link = (await admin.call("PATCH", "/v1/users/bob@x.org", {"new_link": True})).body["link"]
        assert (await bob.get("/v0/topics")).status == 401
        token = link.partition("/set-up#")[2]
        body = {"token": token, "password": "a new one for bob"}
        assert (await served.browser().post("/v1/auth/setup", body)).status == 201
        assert (await served.browser().post("/v1/auth/setup", body)).status == 401
        assert (await sign_in(served, email="bob@x.org"))[1] == 401


@on_loop
async def test_an_event_stream_of_a_page_ends_with_its_session(tmp_path: Path) -> None:
    async with accounts_served(tmp_path) as served:
        browser = await served.signed_up()
        assert (await browser.post("/v0/topics/t", {"records": [{"data": 1}]})).status == 201
        wid = (await browser.post("/v0/watch", {"topics": {"t": {"from_seq": 0}}})).body["wid"]
        page = served.browser()
        page.cookies = dict(browser.cookies)
        stream = asyncio.create_task(page.get(f"/v0/watch/{wid}"))
        while not served.context.open_streams:
            await asyncio.sleep(0)
        assert (await browser.post("/v1/auth/logout")).body["signed_out"] is True
        answer = await stream
        assert answer.status == 200 and answer.headers["content-type"].startswith("text/event-stream")
        assert (await page.get(f"/v0/watch/{wid}")).status == 401


@on_loop
async def test_a_page_that_writes_on_one_connection_is_looked_at_each_time(tmp_path: Path) -> None:
    """The quick way of plain writes is for keys."""
    async with accounts_served(tmp_path) as served:
        browser = await served.signed_up()
        cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        body = b'{"records":[{"data":1}]}'
        lines = [
            "POST /v0/topics/t HTTP/1.1",
            "Host: localhost",
            "Content-Type: application/json",
            f"Cookie: {cookies}",
        ]
        lines += [f"X-CSRF-Token: {browser.cookies['topics_csrf']}", f"Content-Length: {len(body)}", "", ""]
        reader, writer = await asyncio.open_connection(served.api.address.hostname, served.api.address.port)
        caller = Caller(reader, writer)

        async def write() -> int:
            caller.send("\r\n".join(lines).encode() + body)
            return (await caller.answer()).status

        assert [await write() for _ in range(4)] == [201, 200, 200, 200]
        served.clock.ahead_ms = ACCESS_MS + 1000
        assert await write() == 401, "the same bytes, but the sign-in in them has expired"
        await caller.close()


# ---- guessing


@on_loop
async def test_who_guesses_passwords_waits_longer_and_longer(tmp_path: Path) -> None:
    async with accounts_served(tmp_path) as served:
        await served.signed_up()
        served.clock.stand_still()
        statuses = [(await sign_in(served, f"wrong password {number}"))[1] for number in range(8)]
        assert statuses == [401] * 5 + [429] * 3
        browser = served.browser()
        refused = await browser.post("/v1/auth/login", {"email": ADA, "password": PASSWORD})
        assert refused.status == 429 and int(refused.headers["retry-after"]) >= 1
        waits = []
        for _ in range(3):
            served.clock.ahead_ms += waits[-1] + 10 if waits else 1010
            assert (await sign_in(served, "still a wrong password"))[1] == 401
            late = await browser.post("/v1/auth/login", {"email": ADA, "password": PASSWORD})
            waits.append(late.error["detail"]["retry_after_ms"])
        assert waits[0] < waits[1] < waits[2]
        served.clock.ahead_ms += waits[-1] + 10
        assert (await sign_in(served))[1] == 200
        assert (await sign_in(served, "one slip is free again"))[1] == 401
        assert (await sign_in(served))[1] == 200


@on_loop
async def test_an_email_that_nobody_has_looks_like_a_wrong_password(tmp_path: Path) -> None:
    async with accounts_served(tmp_path) as served:
        await served.signed_up()
        compared: list[str] = []
        matches = served.context.hashing.matches

        async def counted(hashed: str, text: str) -> bool:
            compared.append(hashed.rpartition("$")[0].rpartition("$")[0])
            return bool(await matches(hashed, text))

        served.context.hashing.matches = counted
        answers = []
        for email in (ADA, "nobody@example.org"):
            answer = await served.browser().post("/v1/auth/login", {"email": email, "password": "wrong password"})
            answers.append((answer.status, answer.error))
        assert answers[0] == answers[1]
        assert len(compared) == 2 and compared[0] == compared[1]


@on_loop
async def test_secrets_are_never_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger("topics").propagate = True
    async with accounts_served(tmp_path, access_log=1, api_keys=ADMIN_KEY) as served:
        token = served.server.set_up_link.partition("/set-up#")[2]
        browser = await served.signed_up()
        await sign_in(served, "a wrong password")
        served.api.key = ADMIN_KEY
        key = (await served.api.post("/v1/keys", {"name": "ci", "scopes": ["read"]})).body["key"]
        api = Api(served.server.url)
        api.key = key
        await api.get("/v0/topics")
        secrets = [PASSWORD, "a wrong password", token, key, key.rpartition("_")[2], ADMIN_KEY]
        secrets += list(browser.cookies.values())
    said = caplog.text + "".join(str(vars(record)) for record in caplog.records)
    audit = (tmp_path / "data" / "audit" / "audit.jsonl").read_text()
    assert "/v0/topics" in said and "sign_in" in audit
    assert not [secret for secret in secrets if secret in said or secret in audit]


@on_loop
async def test_the_signing_secret_is_its_owners_only(tmp_path: Path) -> None:
    async with accounts_served(tmp_path) as served:
        path = served.directory / "data" / "auth" / "signing.json"
        assert path.stat().st_mode & 0o777 == 0o600
        browser = await served.signed_up()
        cookies = dict(browser.cookies)
    async with accounts_served(tmp_path) as served:
        again = served.browser()
        again.cookies = cookies
        assert (await again.get("/v0/topics")).status == 200
    path.unlink()
    async with accounts_served(tmp_path) as served:
        again = served.browser()
        again.cookies = cookies
        assert (await again.get("/v0/topics")).status == 401
        assert (await sign_in(served))[1] == 200


# ---- what is not asked for by the right one


@on_loop
async def test_the_first_user_needs_an_address_and_the_link_stays_good(tmp_path: Path) -> None:
    async with accounts_served(tmp_path) as served:
        token = served.server.set_up_link.partition("/set-up#")[2]
        refused = await served.browser().post("/v1/auth/setup", {"token": token, "password": PASSWORD})
        assert refused.status == 400 and refused.error["detail"]["field"] == "email"
        assert not served.accounts.users
        await served.signed_up()


@on_loop
async def test_a_key_has_no_password_to_change(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        served.api.key = ADMIN_KEY
        body = {"current_password": PASSWORD, "new_password": "another horse entirely"}
        refused = await served.api.post("/v1/auth/password", body)
        assert refused.status == 403 and "an admin makes a new link" in refused.error["message"]


@on_loop
async def test_an_open_server_says_that_users_do_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        invited = await api.post("/v1/users", {"email": "bob@example.org", "role": "viewer"})
        assert invited.status == 201 and "TOPICS_AUTH=1" in invited.body["warning"]
