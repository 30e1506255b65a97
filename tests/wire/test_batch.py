from __future__ import annotations

import pytest

from topics.core.records import DEFAULT_LIMITS
from topics.core.waits import waits_of
from topics.errors import InvalidRequest
from topics.limits import STAGES_PER_BATCH_MAX
from topics.wire.batch import PublishRequest, decode_abort, decode_publish, decode_stage


def test_a_stage_is_a_write_with_a_name() -> None:
    wanted = decode_stage(b'{"records":[{"data":1},{"data":2}],"stage":"s","partition":3}', DEFAULT_LIMITS)
    assert (wanted.stage, wanted.batch.records.count, wanted.batch.partition) == ("s", 2, 3)


def test_a_publish() -> None:
    wanted = decode_publish(b'{"stages":["b","a"],"producer_id":"p","epoch":7}')
    assert wanted == PublishRequest(("b", "a"), "p", 7)


def test_a_stage_is_aborted_once() -> None:
    assert decode_abort(b'{"stages":["b","a","b"]}') == ("b", "a")


@pytest.mark.parametrize("key", ['"idempotency_key":"k"', '"producer_id":"p","epoch":1,"sequence":1'])
def test_a_stage_is_made_idempotent_by_its_publish(key: str) -> None:
    with pytest.raises(InvalidRequest, match="give producer_id and epoch there") as caught:
        decode_stage(f'{{"stage":"s","records":[{{"data":1}}],{key}}}'.encode(), DEFAULT_LIMITS)
    assert caught.value.detail["field"] == "producer_id"


def test_so_many_stages_at_most() -> None:
    names = ",".join(f'"{number}"' for number in range(STAGES_PER_BATCH_MAX + 1))
    with pytest.raises(InvalidRequest) as caught:
        decode_abort(f'{{"stages":[{names}]}}'.encode())
    assert caught.value.detail["field"] == "stages"


def waits(fields: str) -> bytes:
    return decode_stage(f'{{"stage":"s","records":[{{"data":1}},{{"data":2}}]{fields}}}'.encode(), DEFAULT_LIMITS).waits


def test_staged_jobs_may_wait() -> None:
    assert waits("") == waits(',"delay_ms":0') == b""
    assert waits(',"delay_ms":5') == waits_of([-5, -5])
    assert waits(',"not_before":1700000000000,"delay_ms":null') == waits_of([1_700_000_000_000] * 2)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (',"delay_ms":5,"not_before":1700000000000', "wait in one way"),
        (f',"delay_ms":{2**62}', "that far away"),
        (f',"not_before":{2**63}', "that far away"),
    ],
)
def test_ways_in_which_staged_jobs_cannot_wait(fields: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        waits(fields)
