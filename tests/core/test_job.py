"""The text of jobs, cut out of their log and joined with their leases."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.queuerig import QueueRig
from topics.core.job import JobTexts, jobs_text
from topics.core.log import Log

DRAFTS = st.lists(
    st.fixed_dictionaries(
        {"data": st.one_of(st.integers(), st.text(max_size=5), st.just({"$seq": '},{"$seq":2,'}))},
        optional={"tag": st.sampled_from(["a", 'b"', "ü%d"]), "node": st.just("n"), "meta": st.just({"k": "%b%d"})},
    ),
    min_size=1,
    max_size=9,
)


def filled(batches: list[list[dict[str, Any]]], frozen: bool) -> Log:
    rig = QueueRig()
    rig.configure("q", type="queue")
    for drafts in batches:
        rig.write(*drafts, topic="q")
        if frozen:
            rig.log("q").freeze_tail()
    return rig.log("q")


def told(text: bytes) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = msgspec.json.decode(b"[%b]" % text)
    return jobs


@settings(max_examples=200)
@given(st.lists(DRAFTS, min_size=1, max_size=4), st.booleans(), st.data())
def test_each_part_gets_its_own_jobs_with_their_leases(
    batches: list[list[dict[str, Any]]], frozen: bool, data: st.DataObject
) -> None:
    log = filled(batches, frozen)
    drafts = [draft for batch in batches for draft in batch]
    seqs = sorted(data.draw(st.sets(st.integers(1, len(drafts)), min_size=1)))
    ends = sorted(data.draw(st.lists(st.integers(0, len(seqs)), max_size=3)))
    dealt = [seqs[start:end] for start, end in zip([0, *ends], [*ends, len(seqs)], strict=True)]
    if data.draw(st.booleans()):
        dealt.reverse()
    for part, pieces in zip(dealt, JobTexts(log).divided(dealt), strict=True):
        if not part:
            continue
        deliveries = data.draw(st.lists(st.integers(1, 3), min_size=len(part), max_size=len(part)))
        jobs = told(jobs_text(pieces, 0xFE, 77, deliveries))
        assert [job["$seq"] for job in jobs] == part
        assert [job["lease_id"] for job in jobs] == [f"lease_{0xFE + place:x}" for place in range(len(part))]
        assert [job["deliveries"] for job in jobs] == deliveries and {job["deadline"] for job in jobs} == {77}
        for job in jobs:
            draft = drafts[job["$seq"] - 1]
            assert job["data"] == draft["data"]
            assert (job.get("$tag"), job.get("$node"), job.get("meta")) == (
                draft.get("tag"),
                draft.get("node"),
                draft.get("meta"),
            )
            assert list(job)[:4] == ["$seq", "lease_id", "deadline", "deliveries"]


def test_seqs_that_get_a_digit_more_are_cut_at_the_right_place() -> None:
    log = filled([[{"data": number} for number in range(1, 121)]], frozen=False)
    for first, last in ((8, 11), (1, 120), (98, 102)):
        (pieces,) = JobTexts(log).divided([list(range(first, last + 1))])
        jobs = told(jobs_text(pieces, 1, 1, [1] * (last - first + 1)))
        assert [(job["$seq"], job["data"]) for job in jobs] == [(seq, seq) for seq in range(first, last + 1)]


def test_no_more_jobs_than_fit_and_one_at_least() -> None:
    log = filled([[{"data": "x" * 100}] * 5, [{"data": "x" * 100}] * 5], frozen=True)
    texts = JobTexts(log)
    each_bytes = len(texts.pieces([1])[1]) + len(texts.pieces([1])[0]) + 1
    assert texts.fitting_count([], 1) == 0
    assert texts.fitting_count([1, 2, 3], 1) == 1
    assert texts.fitting_count([7, 2, 3], 2 * each_bytes) == 2
    assert texts.fitting_count(list(range(1, 11)), 7 * each_bytes + 20) == 7
    assert texts.fitting_count(list(range(1, 11)), 1 << 20) == 10
