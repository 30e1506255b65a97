"""A server goes nowhere by itself: no address that a user names is called, no path leads out of its directory."""

from __future__ import annotations

import ast
import asyncio
import re
from pathlib import Path
from urllib.parse import quote

import pytest

import topics
from tests.client.rig import on_loop
from tests.security.counting import Count
from tests.security.pipelined import Asked, ask_all, ask_head
from tests.server.api import Api, serving
from topics.clock import SystemClock
from topics.engine.recovery import Options
from topics.engine.unpacking import restore_archive, verify_archive
from topics.errors import Damaged
from topics.server.table import EVERYTHING
from topics.storage.archive import MANIFEST_NAME, ArchiveWriter
from topics.storage.fs import RealFs

ROOT = Path(next(iter(topics.__path__)))
ROOMS = ("core", "wire", "sql", "storage", "engine", "sqlengine", "server")
CALLERS = {
    *("http.client", "urllib.request", "urllib3", "requests", "aiohttp", "httpx", "ftplib", "smtplib", "xmlrpc"),
    *("telnetlib", "websockets.client", "websockets.asyncio.client", "websockets.sync.client"),
}
CONNECTS = {
    *("create_connection", "create_unix_connection", "open_connection", "open_unix_connection", "connect_ex"),
    *("insecure_channel", "secure_channel"),
}

NAMES = (
    "../../etc/passwd",
    "..",
    "/etc/passwd",
    "a/../../b",
    "%2e%2e%2fetc",
    "..\\..\\x",
    "a\0b",
    "~root",
    "C:\\x",
    ".hidden/..",
)
"""What somebody might hope becomes a path."""


def test_nothing_that_serves_can_call_out() -> None:
    """By its imports: the only addresses that a server calls are those of its settings, a collector of spans."""
    found = []
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
                found += [f"{path.name}: imports {name}" for name in names if name in CALLERS]
                if isinstance(node, ast.Attribute) and node.attr in CONNECTS:
                    found.append(f"{path.name}:{node.lineno}: {node.attr}")
    assert not found


@on_loop
async def test_an_address_in_a_request_is_not_called(tmp_path: Path) -> None:
    called: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        called.append((await reader.readline()).decode("latin-1"))
        writer.close()

    trap = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{trap.sockets[0].getsockname()[1]}/x"
    async with trap, serving(tmp_path) as api:
        for text in (
            f"SELECT * FROM read_csv('{url}')",
            f"SELECT * FROM '{url}.parquet'",
            f"SELECT * FROM read_json_auto('{url}')",
            f"ATTACH '{url}' AS x",
            f"COPY (SELECT 1) TO '{url}'",
            f"INSTALL httpfs FROM '{url}'",
            "SELECT * FROM read_text('/etc/passwd')",
            "SELECT * FROM glob('/*')",
        ):
            refused = await api.post("/v0/sql", {"sql": text})
            assert refused.status == 400, text
            assert "root:" not in refused.raw.decode()
        await api.write("a", url, {"url": url})
        for scheme in ("delta", "csv", "parquet"):
            await api.put(f"/v0/tables/t-{scheme}", {"format": scheme, "location": url})
        await api.put("/v0/pipelines/p", {"definition": f"APPEND INTO DELTA.'{url}' FROM STREAM a"})
        await api.call("GET", "/v0/topics", headers={"Origin": url, "Referer": url, "X-Forwarded-Host": url})
        await api.call("GET", url)
        assert (await api.get("/v0/tables")).status == 200
    assert not called


@on_loop
async def test_no_name_becomes_a_path(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("a", 1)
        before = files(tmp_path)
        for name in NAMES:
            escaped = quote(name, safe="")
            for method, path, body in (
                ("POST", f"/v0/topics/{escaped}", {"records": [{"data": 1}]}),
                ("PUT", f"/v0/topics/{escaped}", {}),
                ("PUT", f"/v0/routers/{escaped}", {"source": "a", "dest": "b"}),
                ("POST", f"/v0/topics/a/groups/{escaped}/consume", {}),
                ("POST", "/v0/topics/a/stage", {"stage": name, "records": [{"data": 1}]}),
                ("PUT", f"/v0/topics/a/archives/{escaped}", {"upto_seq": 1, "location": name}),
                ("POST", "/v1/heaps", {"topic": name}),
                ("GET", f"/v0/docs/{escaped}", None),
                ("GET", f"/{escaped}", None),
                ("GET", f"/v0/../{name}".replace("\0", "%00").replace(" ", "%20"), None),
            ):
                answer = await api.call(method, path, body)
                assert answer.status < 500, (method, path, answer.raw)
                assert b"root:" not in answer.raw
        assert {path.parts[0] for path in files(tmp_path)} == {path.parts[0] for path in before} == {"data"}
        strange = [
            path for path in files(tmp_path) if not all(part.isascii() and ".." not in part for part in path.parts)
        ]
        assert not strange and not [path for path in files(tmp_path) if "passwd" in path.name]
        assert await still_there(api)


@on_loop
async def test_no_part_of_any_path_becomes_one(tmp_path: Path, record_property: Count) -> None:
    """Each part that a route captures, of the dashboard's files as well, with each of those names in its place."""
    places = [(route, part) for route in EVERYTHING for part in re.findall(r"{\w+}", route.path) if not route.streams]
    assert len(places) >= 80
    asked = [
        Asked(route.method, _filled(route.path, part, name), {}, b"{}" if route.method in ("POST", "PUT") else b"")
        for route, part in places
        for name in NAMES
    ]
    asked += [Asked("GET", f"/web/{written}", {}) for name in NAMES for written in (name, quote(name, safe=""))]
    # A NUL is no part of a path, and ends its connection.
    plain = [each for each in asked if "%00" not in each.path and "\0" not in each.path]
    async with serving(tmp_path) as api:
        await api.write("a", 1)
        url = api.address.geturl()
        told = dict(zip(plain, await ask_all(url, plain), strict=True))
        told |= {each: await ask_head(url, each) for each in asked if each not in told}
        assert await still_there(api)
    for each, answer in told.items():
        assert answer.status < 500 and b"root:" not in answer.body, (each, answer)
    assert {path.parts[0] for path in files(tmp_path)} == {"data"}
    assert not [path for path in files(tmp_path) if "passwd" in path.name or ".." in path.name]
    record_property("paths", len(asked))


def _filled(path: str, part: str, name: str) -> str:
    """The path with a name in one place, and harmless ones in all others."""
    return re.sub(r"{\w+}", "none", path.replace(part, quote(name, safe="")))


def files(root: Path) -> list[Path]:
    return [path.relative_to(root) for path in root.rglob("*")]


async def still_there(api: Api) -> bool:
    return (await api.diff("a"))["records"][0]["data"] == 1


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "wal/../../evil", "wal/a/b", "evil", "segments/..", "wal/.x"])
def test_an_archive_writes_nowhere_else(tmp_path: Path, name: str) -> None:
    writer = ArchiveWriter(5)
    body = b'{"format":1,"program":"x","created_ms":1,"snapshot_no":0,"files":1,"bytes":1,"positions":{}}'
    chunks = [*writer.member(MANIFEST_NAME, len(body), [body]), *writer.member(name, 1, [b"x"]), *writer.end()]
    archive = tmp_path / "backup.tar"
    archive.write_bytes(b"".join(chunks))
    before = {path for path in tmp_path.parent.rglob("*") if "evil" in path.name}
    fs = RealFs(SystemClock())
    with pytest.raises(Damaged):
        verify_archive(fs, str(archive))
    with pytest.raises(Damaged):
        restore_archive(fs, str(archive), str(tmp_path / "data"), SystemClock(), lambda: 7, Options())
    assert {path for path in tmp_path.parent.rglob("*") if "evil" in path.name} == before
