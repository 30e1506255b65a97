"""A batch of messages under a name of its own: sent again, it gets the first answer.

What of a batch went into a partition is remembered there, in the same commit as the messages, by a key made of the
transaction's id and how many of its messages came before. A stage whose id says that it belongs to a transaction leaves
the same keys when it is published (`core/batch.py`). So the answer can be put together again from the partitions, for
as long as their `idempotency_window_ms`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from topics.core.dedupe import Hit, IdempotencyKey
from topics.core.log import Log
from topics.core.ulid import message_ids
from topics.errors import InvalidRequest
from topics.limits import IDEMPOTENCY_KEY_CHARS_MAX, STAGE_ID_BYTES_MAX, TRANSACTION_ID_BYTES_MAX

if TYPE_CHECKING:
    from topics.core.machine import Machine

_PREFIX = "txn:"
_MARK_CHARS_MAX = 24

assert len(_PREFIX) + TRANSACTION_ID_BYTES_MAX + _MARK_CHARS_MAX <= min(STAGE_ID_BYTES_MAX, IDEMPOTENCY_KEY_CHARS_MAX)


def check_transaction(text: str) -> None:
    if len(text.encode()) > TRANSACTION_ID_BYTES_MAX:
        expected = f"at most {TRANSACTION_ID_BYTES_MAX} bytes"
        raise InvalidRequest(f"transaction_id must have {expected}", field="transaction_id", expected=expected)


def key_of(transaction: str, before: int) -> IdempotencyKey:
    """What the messages of a transaction in one partition are remembered by, behind so many others of it."""
    return IdempotencyKey(f"{_PREFIX}{transaction}:{before}")


def stage_of(transaction: str, mark: str) -> str:
    """The id of a stage for messages of a transaction; the mark is no other stage's."""
    return f"{_PREFIX}{transaction}:{mark}"


def staged_key(stage: str, before: int) -> IdempotencyKey | None:
    """The key for messages of a stage, behind so many others of it; None when it belongs to no transaction."""
    if not stage.startswith(_PREFIX):
        return None
    return key_of(stage.removeprefix(_PREFIX).rpartition(":")[0], before)


def remembered_ids(machine: Machine, log: Log, transaction: str, now_ms: int) -> list[str]:
    """Ids of the messages of a transaction that went into a partition, in their order; none when it is not known."""
    return [
        text
        for hit in _remembered(machine, log, transaction, now_ms)
        for text in message_ids(hit.ts, log.partition, hit.first_seq, hit.count)
    ]


def _remembered(machine: Machine, log: Log, transaction: str, now_ms: int) -> Iterator[Hit]:
    window_ms = machine.topic(log.topic).config.idempotency_window_ms
    count = 0
    while log.remembers:
        hit = log.dedupe.lookup(key_of(transaction, count), now_ms, window_ms)
        if hit is None:
            return
        yield hit
        count += hit.count
