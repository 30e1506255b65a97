"""Mutants of what keeps ephemeral records out of every file."""

from __future__ import annotations

from proof.mutants.mutant import Mutant

_TESTS = "tests/sim/"

VOLATILE = (
    Mutant(
        "ephemeral-run-flushed",
        "no segment holds a record that came while its topic was ephemeral",
        "topics/engine/checkpoint.py",
        "            elif volatile is None or run.first_seq not in volatile:\n",
        "            else:\n",
        (_TESTS + "test_ephemeral.py::test_records_of_a_topic_that_became_durable_stay_out",),
    ),
    Mutant(
        "ephemeral-shares-a-tail",
        "a run holds stored records or ephemeral ones, never both",
        "topics/core/volatile.py",
        "    log.freeze_tail()\n",
        "",
        (_TESTS + "test_ephemeral.py::test_records_written_while_ephemeral_are_in_no_file",),
    ),
    Mutant(
        "ephemeral-stage-written",
        "no fact holds what is staged for an ephemeral topic",
        "topics/core/batch.py",
        "    if not in_memory:\n        facts.append(StoredFact(log.log_id",
        "    if True:\n        facts.append(StoredFact(log.log_id",
        (_TESTS + "test_ephemeral.py::test_stages_of_an_ephemeral_topic_are_in_no_file",),
    ),
)
