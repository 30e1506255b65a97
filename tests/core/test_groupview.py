from __future__ import annotations

from tests.core.damage import mend, spoil
from tests.core.grouprig import GroupRig
from topics.core.groupcommands import Consume
from topics.core.groupview import state_of


def test_the_time_of_what_cannot_be_read_is_not_known() -> None:
    rig = GroupRig()
    rig.write_numbers(1, 2)
    rig.step(Consume("t", "g", limit=1))
    log, group, config = rig.log(), rig.group(), rig.machine.topic("t").config
    assert group is not None
    assert (state_of(log, group, config).oldest_unacked_seq, state_of(log, group, config).oldest_unacked_ts) == (
        1,
        rig.now_ms,
    )
    sound = spoil(log)
    shown = state_of(log, group, config)
    assert (shown.oldest_unacked_seq, shown.oldest_unacked_ts, shown.in_flight) == (1, None, 1)
    mend(log, sound)
    assert state_of(log, group, config).oldest_unacked_ts == rig.now_ms
