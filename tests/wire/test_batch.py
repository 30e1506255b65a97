from __future__ import annotations

import pytest

from topics.core.records import DEFAULT_LIMITS
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


def test_so_many_stages_at_most() -> None:
    names = ",".join(f'"{number}"' for number in range(STAGES_PER_BATCH_MAX + 1))
    with pytest.raises(InvalidRequest) as caught:
        decode_abort(f'{{"stages":[{names}]}}'.encode())
    assert caught.value.detail["field"] == "stages"


@pytest.mark.parametrize("field", ["delay_ms", "not_before"])
def test_staged_records_cannot_be_delayed(field: str) -> None:
    body = f'{{"stage":"s","records":[{{"data":1}}],"{field}":5}}'.encode()
    with pytest.raises(InvalidRequest, match="delayed"):
        decode_stage(body, DEFAULT_LIMITS)
