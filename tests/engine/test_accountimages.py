"""Accounts over restarts, checkpoints, backups and repairs; and no secret in any file."""

from __future__ import annotations

import pytest

from tests.core.accountrig import HASH, LIFE_MS
from tests.engine.archives import restored
from tests.engine.damage import flipped
from tests.engine.rig import Rig
from tests.engine.test_backup import opened
from topics.accountmodel import Role
from topics.core.accountcommands import (
    AddKey,
    AddUser,
    BeginSession,
    ChangeUser,
    DropUser,
    EndSession,
    NoteKeysUsed,
    RefreshSession,
    RevokeKey,
)
from topics.engine.anatomy import dissect
from topics.engine.fsck import fsck


def filled() -> Rig:
    rig = Rig()
    for name in ("ada", "bob", "eve"):
        rig.driver.do(AddUser(name, f"{name}@example.org", Role.ADMIN, HASH))
        rig.driver.do(AddKey(f"k-{name}", name, HASH, ("read",), (), name))
        rig.driver.do(BeginSession(f"s-{name}", name, LIFE_MS))
    return rig


def changed(rig: Rig) -> None:
    rig.driver.do(ChangeUser("ada", role=Role.VIEWER))
    rig.driver.do(DropUser("bob"))
    rig.driver.do(RevokeKey("k-ada"))
    rig.driver.do(NoteKeysUsed(("k-bob",)))
    rig.driver.do(RefreshSession("s-eve", 0, LIFE_MS, 0))
    rig.driver.do(EndSession("s-ada"))


def check(rig: Rig) -> None:
    accounts = rig.engine.machine.accounts
    assert {name: user.role for name, user in accounts.users.items()} == {"ada": "viewer", "eve": "admin"}
    assert accounts.user_of("eve@example.org") is accounts.users["eve"]
    assert {name: bool(key.revoked_ms) for name, key in accounts.keys.items()} == {
        "k-ada": True,
        "k-bob": False,
        "k-eve": False,
    }
    assert accounts.keys["k-bob"].used_ms and not accounts.keys["k-eve"].used_ms
    assert {name: session.generation for name, session in accounts.sessions.items()} == {"s-eve": 1}
    assert [session.session_id for session in accounts.sessions_of("eve")] == ["s-eve"]


@pytest.mark.parametrize("checkpoint", ["none", "between", "behind"])
@pytest.mark.parametrize("end", ["stop", "kill", "crash"])
def test_accounts_are_there_again(checkpoint: str, end: str) -> None:
    rig = filled()
    if checkpoint == "between":
        rig.checkpoint()
    changed(rig)
    rig.work()
    if checkpoint == "behind":
        rig.checkpoint()
    check(rig)
    getattr(rig, end)()
    check(rig)
    rig.stop()
    check(rig)


def test_a_checkpoint_that_fails_loses_nothing() -> None:
    rig = filled()
    changed(rig)
    job = rig.capture()
    rig.engine.end_checkpoint(job, OSError("full"))
    rig.checkpoint()
    rig.stop()
    check(rig)


def test_a_backup_has_them() -> None:
    rig = filled()
    rig.checkpoint()
    changed(rig)
    check(restored(rig, opened(rig).chunks()))


def test_a_repair_of_something_else_keeps_them() -> None:
    rig = filled()
    rig.write("orders", *range(100))
    rig.checkpoint()
    changed(rig)
    rig.driver.close()
    assert fsck(rig.disk, "/data", rig.clock, lambda: 7, rig.options, False).clean
    (segment,) = [path for path in rig.disk.contents() if path.endswith(".data")]
    rig.disk = flipped(rig.disk.contents(), segment, 300, 0x10)
    assert not fsck(rig.disk, "/data", rig.clock, lambda: 7, rig.options, True).clean
    rig.start()
    check(rig)


def test_looking_into_files_shows_no_hash() -> None:
    rig = filled()
    rig.checkpoint()
    rig.driver.do(AddUser("new", "new@example.org", Role.VIEWER, HASH))
    rig.driver.close()
    said = ""
    for path in rig.disk.contents():
        if path.endswith((".wal", ".snap")):
            said += repr([part.about for part in dissect(rig.disk, path)])
    assert "new@example.org" in said and "k-ada" in said and "(hash)" in said and "argon2id" not in said
