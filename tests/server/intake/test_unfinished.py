"""Bodies that have not come whole: who may send one, and how much all of them may hold together."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path

import pytest

from tests.server.httprig import Answer, Caller, both_loops, run
from tests.server.lanerig import LaneRig, body_of, serving
from topics.limits import HEADERS_MAX, KIB, MIB, OPEN_BODY_BYTES_MAX

BOSS = "Authorization: Bearer boss"
WRONG = "Authorization: Bearer wrong"
PATH = "/v0/topics/orders"


def head(length: int, *headers: str, path: str = PATH) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", f"Content-Length: {length}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode()


def code_of(answer: Answer) -> tuple[int, str]:
    error = body_of(answer)["error"]
    return answer.status, error.get("reason") or error["code"]


async def send(rig: LaneRig, data: bytes) -> Caller:
    caller = await rig.call(known=False)
    caller.send(data)
    return caller


@both_loops
@pytest.mark.parametrize("key", [(), (WRONG,)])
def test_request_without_a_key_is_refused_before_its_body(key: tuple[str, ...], loop: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, api_keys="boss") as rig:
            caller = await send(rig, head(10 * MIB, *key))
            answer = await caller.answer()
            assert code_of(answer) == (401, "unauthorized")
            assert answer.headers["connection"] == "close"
            assert rig.context.held.unknown.bytes == rig.context.held.known.bytes == 0

    run(scenario, loop)


@pytest.mark.parametrize(
    ("path", "key", "refusal"),
    [
        ("/nowhere", BOSS, (404, "not_found")),
        ("/v0/health", BOSS, (405, "method_not_allowed")),
        (PATH, "Authorization: Bearer reader", (403, "forbidden")),
        ("/v0/topics/other", "Authorization: Bearer bound", (403, "forbidden")),
        ("/v1/auth/login", "X-Nothing: here", (413, "payload_too_large")),
    ],
)
def test_request_that_will_be_refused_is_refused_before_its_body(
    path: str, key: str, refusal: tuple[int, str], tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, api_keys="boss,reader:read,bound:rw:orders") as rig:
            caller = await send(rig, head(10 * MIB, key, path=path))
            assert code_of(await caller.answer()) == refusal

    run(scenario)


def test_chunked_body_of_a_sign_in_is_bounded(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, api_keys="boss", auth=True) as rig:
            lines = ["POST /v1/auth/login HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked", "", ""]
            caller = await send(rig, "\r\n".join(lines).encode())
            for _ in range(OPEN_BODY_BYTES_MAX // KIB + 1):
                caller.send(b"400\r\n" + b"x" * KIB + b"\r\n")
            assert code_of(await caller.answer()) == (413, "payload_too_large")

    run(scenario)


@pytest.mark.parametrize("key", [(), (WRONG,)])
def test_expectation_without_a_key_is_answered_with_the_refusal(key: tuple[str, ...], tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, api_keys="boss") as rig:
            caller = await send(rig, head(1000, *key, "Expect: 100-continue"))
            assert (await caller.answer()).status == 401
            caller = await send(rig, head(2, BOSS, "Expect: 100-continue", path=f"{PATH}/diff"))
            assert (await caller.answer()).status == 100
            caller.send(b"{}")
            assert (await caller.answer()).status == 404

    run(scenario)


def test_compressed_body_without_a_key_is_not_inflated(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, api_keys="boss") as rig:
            packed = gzip.compress(b"x" * 8 * MIB)
            for key, refusal in ((WRONG, (401, "unauthorized")), (BOSS, (400, "invalid_request"))):
                caller = await send(rig, head(len(packed), "Content-Encoding: gzip", key) + packed)
                assert code_of(await caller.answer()) == refusal
            login = head(len(packed), "Content-Encoding: gzip", path="/v1/auth/login") + packed
            assert code_of(await (await send(rig, login)).answer()) == (413, "payload_too_large")

    run(scenario)


@both_loops
@pytest.mark.parametrize("packing", ["", "gzip"])
@pytest.mark.parametrize("good", [True, False])
def test_key_that_was_never_seen_is_compared_before_the_body_comes(
    good: bool, packing: str, loop: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, api_keys="boss", auth=True) as rig:
            made = await rig.ask("POST", "/v1/keys", {"name": "n", "scopes": ["write", "read"]}, BOSS)
            key = body_of(made)["key"]
            rig.context.authenticator.managed._verified.clear()
            key = key if good else key[:-1] + ("0" if key[-1] != "0" else "1")
            body = json.dumps({"records": [{"data": "x" * 300 * KIB}]}).encode()
            body = gzip.compress(body) if packing else body
            headers = [f"Authorization: Bearer {key}", *(["Content-Encoding: gzip"] if packing else [])]
            caller = await send(rig, head(len(body), *headers) + body)
            answer = await caller.answer()
            assert answer.status == (201 if good else 401), answer.body
            assert rig.context.held.unknown.bytes == rig.context.held.known.bytes == 0

    run(scenario, loop)


def test_bodies_of_all_connections_together_are_bounded(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, api_keys="boss", max_body_bytes=2 * MIB, max_incoming_bytes=3 * MIB) as rig:
            held = rig.context.held
            first = await send(rig, head(2 * MIB, BOSS) + b"x" * (MIB + 500 * KIB))
            while held.known.bytes < MIB + 500 * KIB:
                await asyncio.sleep(0)
            # One that cannot fit is refused before it sends anything, and one that says no length when it is too much.
            answer = await (await send(rig, head(2 * MIB, BOSS))).answer()
            assert code_of(answer) == (429, "throttled")
            assert answer.headers["retry-after"] == "1"
            assert body_of(answer)["error"]["detail"]["limit"] == "max_incoming_bytes"
            lines = [f"POST {PATH} HTTP/1.1", "Host: localhost", BOSS, "Transfer-Encoding: chunked", "", ""]
            endless = await send(rig, "\r\n".join(lines).encode())
            for _ in range(17):
                endless.send(b"19000\r\n" + b"x" * 100 * KIB + b"\r\n")
            assert code_of(await endless.answer()) == (429, "throttled")
            assert held.known.bytes <= 3 * MIB
            # The first is not disturbed, and what the others held is free again.
            first.send(b"x" * (MIB - 500 * KIB))
            assert code_of(await first.answer()) == (400, "invalid_request")
            small = await rig.ask("POST", PATH, {"records": [{"data": 1}]}, BOSS)
            assert small.status == 201
            assert held.known.bytes == held.unknown.bytes == 0

    run(scenario)


def test_heads_without_a_key_are_bounded_together(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, api_keys="boss") as rig:
            rig.context.held.unknown.bytes_max = 100 * KIB
            began = b"POST / HTTP/1.1\r\nX-Filler: " + b"x" * 40 * KIB
            callers = [await send(rig, began) for _ in range(4)]
            refused = [caller for caller in callers if await _is_answered(caller)]
            assert len(refused) == 2
            assert [code_of(await caller.answer()) for caller in refused] == [(429, "throttled")] * 2
            assert rig.context.held.unknown.bytes <= 100 * KIB
            # A key that is good has the room of those with keys, and what is there whole holds nothing.
            assert (await rig.ask("POST", PATH, {"records": [{"data": "x" * 200 * KIB}]}, BOSS)).status == 201
            assert (await rig.ask("GET", "/v0/health")).status == 200

    run(scenario)


async def _is_answered(caller: Caller) -> bool:
    for _ in range(2000):
        if caller.reader._buffer:  # type: ignore[attr-defined]
            return True
        await asyncio.sleep(0)
    return False


def test_connection_that_ends_frees_what_it_held(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            held = rig.context.held
            caller = await send(rig, head(2 * MIB) + b"x" * MIB)
            while held.known.bytes < MIB:
                await asyncio.sleep(0)
            await caller.close()
            while held.known.bytes:
                await asyncio.sleep(0)
            assert held.take_peak() >= MIB
            assert held.take_peak() == 0

    run(scenario)


def test_request_with_too_many_headers_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            names = [f"X-{number}: a" for number in range(HEADERS_MAX)]
            assert (await rig.ask("GET", "/v0/health", None, *names[:-4])).status == 200
            assert code_of(await rig.ask("GET", "/v0/health", None, *names)) == (431, "headers_too_large")

    run(scenario)
