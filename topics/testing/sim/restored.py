"""A backup is of one moment: a server on what was restored from it must keep the promises made until then.

All that was answered before the backup was asked for is in it, nothing that was asked for after it was answered, and
what lies in between may be. So the history is cut there, what is in between becomes unknown, and the last look at the
restored server takes the place of what came after. What forgets when a process ends has been forgotten.
"""

from __future__ import annotations

import random
from dataclasses import replace

from topics.engine.opening import SALT_BITS, options
from topics.engine.unpacking import restore_archive
from topics.testing.checkers import check
from topics.testing.checkers.events import Call, Fault, History, Outcome, Violation
from topics.testing.fakedisk import FakeDisk
from topics.testing.sim.machine import SETTINGS
from topics.testing.sim.world import World

ARCHIVE = "/backup.tar"


def check_restored(history: History, backup: Call, archive: bytes, seed: int) -> list[Violation]:
    world = World(seed, name="restored")
    disk = FakeDisk(seed)
    file = disk.open(ARCHIVE, "create")
    file.write_at(0, [archive])
    file.close()
    chance = random.Random(seed)
    clock = world.timeline.clock
    clock.jump(10 * 60 * 1000)  # Later than anything in it, whatever the clocks did.
    try:
        restore_archive(
            disk, ARCHIVE, SETTINGS.data_dir, clock, lambda: chance.getrandbits(SALT_BITS), options(SETTINGS)
        )
    except Exception as error:
        return [Violation("backup.refused", f"the archive of a backup that was answered cannot be restored: {error!r}")]
    return [replace(found, rule=f"backup: {found.rule}") for found in check(world.look_at(disk, cut(history, backup)))]


def cut(history: History, backup: Call) -> History:
    """The history as it is known at the moment of a backup."""
    assert backup.done is not None
    calls: list[Call] = []
    for call in history.calls:
        if call.sent < backup.done and not call.asked.get("final"):
            known = call.done is not None and call.done < backup.sent
            calls.append(call if known or not call.possible else replace(call, outcome=Outcome.UNKNOWN, done=None))
    faults = [fault for fault in history.faults if fault.at < backup.done]
    jumps = [at for at in history.jumps if at < backup.done]
    ended = Fault(backup.done, backup.done_ms)
    return History(dict(history.topics), calls, [*faults, ended], jumps=[*jumps, backup.done])
