"""What is found in the directory of a process that was killed, held against what it had said.

Where an operation takes something, which one it is depends on the time; so a process says what it is about to settle,
and what was answered, and here are the least and the most that can have happened.
"""

from __future__ import annotations

from tests.e2e.ledger import Ledger
from topics.client import Client
from topics.model import Record

PARTITIONS = {"messages": 2, "unary": 2, "stream": 2}
"""Of those that have more than one."""
GROUP = "readers"


async def contents(client: Client, name: str) -> list[int]:
    """What a topic holds, in order, for readers who must not be told of a loss."""
    found: list[Record] = []
    for partition in range(PARTITIONS.get(name, 1)):
        from_seq, caught_up = 0, False
        while not caught_up:
            page = await client.topic(name).diff(from_seq, limit=1000, partition=partition)
            assert page.tombstone is None, (name, page.tombstone)
            found += page.records
            from_seq, caught_up = page.next_from_seq, page.caught_up
    return [record.data for record in found]


def either(operations: int) -> tuple[list[int], list[int]]:
    """What was acked, and one operation more."""
    return list(range(operations)), list(range(operations + 1))


async def check_log(client: Client, lane: str, operations: int, ledger: Ledger) -> None:
    """One record an operation, and whoever followed them saw nothing that is not there."""
    found = await contents(client, lane)
    assert found in either(operations), f"{lane} after {operations} operations"
    gone = ledger.of(lane, "seen") - set(found)
    assert not gone, f"{lane} after {operations} operations: {gone} were shown to a watcher and are gone"


async def check_taken(client: Client, lane: str, operations: int, ledger: Ledger) -> None:
    """One job or message an operation: what is done never comes back, what is not done stays."""
    acked, one_more = map(set, either(operations))
    found = await contents(client, lane)
    assert len(set(found)) == len(found) and set(found) <= one_more, f"{lane}: none is there twice"
    back = ledger.of(lane, "settled") & set(found)
    assert not back, f"{lane} after {operations} operations: {back} were done and came back"
    lost = acked - ledger.of(lane, "settling") - set(found)
    assert not lost, f"{lane} after {operations} operations: nobody was done with {lost}"


async def check_group(client: Client, lane: str, operations: int, ledger: Ledger) -> None:
    """One record an operation, and a group that comes along behind."""
    await check_log(client, lane, operations, ledger)
    taken = ledger.of(lane, "settling")
    committed = (await client.topic(lane).group(GROUP).state()).committed_seq if taken else 0
    assert committed >= max(ledger.of(lane, "committed"), default=0), f"{lane}: a commit is not taken back"
    assert set(range(1, committed + 1)) <= taken, f"{lane}: nothing is passed over"
