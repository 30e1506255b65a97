"""What destroys is noted before it begins, and again when it fails."""

from __future__ import annotations

import errno
from functools import partial
from pathlib import Path

from tests.server.httprig import run
from tests.server.lanerig import body_of, fails_to_close, serving
from tests.server.routes.test_heaps import audited


def test_what_the_disk_refuses_is_noted_as_refused_and_the_heap_is_there_after_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            assert (await rig.ask("POST", "/v1/heaps", {"topic": "jobs"})).status == 201
            path = "/v1/heaps/jobs?force=true"
            token = body_of(await rig.ask("DELETE", path))["error"]["detail"]["confirmation_token"]
            rig.fs.fail("write_at", errno.EIO, path="*.wal", always=True)
            refused = await rig.ask("DELETE", f"{path}&confirmation_token={token}")
            assert (refused.status, refused.error) == (503, "UNAVAILABLE")
            lines = [(line["action"], line["name"], line["outcome"]) for line in audited(tmp_path)]
            assert lines == [("delete_heap", "jobs", "begun"), ("delete_heap", "jobs", "log_stopped")]
            rig.fs.clear()

    async def restarted() -> None:
        async with serving(tmp_path) as rig:
            assert (await rig.ask("GET", "/v1/heaps/jobs")).status == 200

    run(partial(fails_to_close, scenario))
    run(restarted)
