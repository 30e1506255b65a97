"""Guessing passwords many at once, and the link of the first start in its file."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.client.rig import on_loop
from tests.server.accountrig import accounts_served
from tests.server.routes.test_signin import sign_in


@on_loop
async def test_no_more_passwords_are_compared_at_once_than_one_after_the_other(tmp_path: Path) -> None:
    async with accounts_served(tmp_path) as served:
        await served.signed_up()
        hashing = served.context.hashing
        compared: list[str] = []
        matches = hashing.matches

        async def counted(hashed: str, text: str) -> bool:
            compared.append(text)
            return await matches(hashed, text)

        hashing.matches = counted
        found = await asyncio.gather(*(sign_in(served, f"wrong password {number}") for number in range(34)))
        assert len(compared) == 5
        assert sorted({status for _, status in found}) == [401, 429]
        assert (await sign_in(served))[1] == 429, "also the right one has to wait"


@on_loop
async def test_set_up_link_in_a_file_is_gone_when_it_is_used_or_of_no_use(tmp_path: Path) -> None:
    async with accounts_served(tmp_path) as served:
        first = Path(served.server.keep_set_up_link())
        assert first.read_text().strip() == served.server.set_up_link and first.stat().st_mode & 0o777 == 0o600
    assert not first.exists(), "the link died with the server"
    first.write_text("what a crash left")
    async with accounts_served(tmp_path) as served:
        assert not first.exists()
        again = Path(served.server.keep_set_up_link())
        await served.signed_up()
        assert not again.exists()
