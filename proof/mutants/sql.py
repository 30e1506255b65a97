"""Mutants of `topics/sqlengine`: query processes without limits, answers without bounds, turns that are not taken."""

from __future__ import annotations

from proof.mutants.mutant import Mutant

_CONFINEMENT = "topics/sqlengine/confinement.py"
_PROCESS = "topics/sqlengine/queryprocess.py"
_POOL = "topics/sqlengine/querypool.py"
_PROGRAM = "topics/sqlengine/queryprogram.py"
_TESTS = "tests/sqlengine/"

SQL = (
    Mutant(
        "query-memory-unlimited",
        "the kernel limits the memory of a query process",
        _CONFINEMENT,
        "        _limit(resource.RLIMIT_DATA, used + memory_bytes + QUERY_SLACK_BYTES)\n",
        "        pass\n",
        (
            _TESTS + "test_confinement.py",
            _TESTS + "test_queryprocess.py::test_process_has_no_secrets_no_files_and_is_killed_first",
        ),
    ),
    Mutant(
        "query-process-opens-files",
        "a query process can open nothing",
        _CONFINEMENT,
        "    _limit(resource.RLIMIT_NOFILE, 0)\n",
        "",
        (_TESTS + "test_confinement.py",),
    ),
    Mutant(
        "query-process-has-the-environment",
        "a query process has none of the server's environment",
        _PROCESS,
        "env={**_ENVIRONMENT, **kept}",
        "env={**environ, **_ENVIRONMENT}",
        (_TESTS + "test_queryprocess.py::test_process_has_no_secrets_no_files_and_is_killed_first",),
    ),
    Mutant(
        "query-process-outlives-its-engine",
        "a query process ends with its engine",
        _PROGRAM,
        "        end(0)\n",
        "        pass\n",
        (_TESTS + "test_queryprogram.py::test_process_ends_when_its_engine_is_gone",),
    ),
    Mutant(
        "answer-bytes-not-counted",
        "an answer is bounded in bytes before the server receives it",
        _PROGRAM,
        "                bounds.take_bytes(answer.add(piece))\n",
        "                answer.add(piece)\n",
        (_TESTS + "test_queryprogram.py::test_refused_query_says_why",),
    ),
    Mutant(
        "answers-bounded-one-by-one",
        "the answers of a request are bounded together",
        "topics/sqlengine/executor.py",
        "                    left -= results[-1].answer_bytes\n",
        "",
        (_TESTS + "test_selecting.py::test_answers_of_a_request_are_bounded_together",),
    ),
    Mutant(
        "query-turns-by-arrival",
        "keys take turns at query processes",
        _POOL,
        "        return self._running[owner], self._served.get(owner, 0), self._waiting[owner][0][0]\n",
        "        return 0, 0, self._waiting[owner][0][0]\n",
        (_TESTS + "test_querypool.py::test_keys_take_turns_at_the_only_process",),
    ),
    Mutant(
        "worn-process-used-again",
        "a process that kept much memory is not used again",
        _PROGRAM,
        "        return kept > self._sandbox.memory_bytes // KEPT_SHARE\n",
        "        return False\n",
        (_TESTS + "test_queryprocess.py::test_process_that_kept_much_memory_is_not_used_again",),
    ),
    Mutant(
        "scan-outlives-its-query",
        "a scan of a query that ended reads and asks for nothing",
        "topics/sqlengine/feed.py",
        "        if self._finished:\n            raise ScanFailed\n",
        "        pass\n",
        (_TESTS + "test_feed.py::test_scan_of_a_query_that_ended_asks_for_nothing",),
    ),
    Mutant(
        "ack-of-a-dropped-claim-creates-its-group",
        "a late ack of a claim does not bring a dropped group back",
        "topics/core/groupsettle.py",
        "    if command.claim_id is None and (placed := _placed_by(machine, command, now_ms)) is not None:\n",
        "    if (placed := _placed_by(machine, command, now_ms)) is not None:\n",
        ("tests/core/test_groups.py",),
    ),
    Mutant(
        "group-created-by-an-ack-not-followed",
        "a consumer is answered when the ack that created its group is safe",
        "topics/engine/grouping.py",
        "        if outcome.group_created:\n            self._placing.follow(key, ticket)\n",
        "",
        ("tests/engine/test_placing.py::test_consumer_waits_until_the_ack_that_created_its_group_is_safe",),
    ),
)
