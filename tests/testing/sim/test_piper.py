from __future__ import annotations

import json
from typing import Any

import pytest

from topics.testing.sim.actors.piper import Answer, answers_in, out_of_order

GOOD: list[Answer] = [
    (201, {}),
    (200, {"created": False}),
    (200, {"claimed": [{"$seq": 1}]}),
    (200, {"created": False}),
    (200, {"records": [{"$seq": 1}, {"$seq": 2}]}),
    (200, {}),
    (404, {}),
]


def with_answer(place: int, status: int, **fields: Any) -> list[Answer]:
    return [*GOOD[:place], (status, fields), *GOOD[place + 1 :]]


def test_answers_in_order_show_no_problem() -> None:
    for count in range(len(GOOD) + 1):
        assert out_of_order(GOOD[:count]) == ""


def test_answer_behind_a_failed_one_shows_no_problem() -> None:
    assert out_of_order([GOOD[0], (503, {}), (200, {"claimed": []})]) == ""
    assert out_of_order([(503, {}), (201, {"created": True})]) == ""


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (with_answer(0, 409), "queue"),
        (with_answer(1, 201, created=True), "created the topic"),
        (with_answer(2, 200, claimed=[]), "claim"),
        (with_answer(4, 200, records=[{"$seq": 1}]), "read did not see"),
        (with_answer(6, 200, records=[]), "deleted"),
    ],
)
def test_answer_that_overtook_another_is_found(answers: list[Answer], words: str) -> None:
    assert words in out_of_order(answers)


def test_answers_are_cut_out_of_bytes() -> None:
    body = json.dumps({"n": 1}).encode()
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    assert answers_in(whole + whole + whole[:-1]) == [(200, {"n": 1}), (200, {"n": 1})]
