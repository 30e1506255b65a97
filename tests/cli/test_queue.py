from __future__ import annotations

from tests.cli.rig import Command


def filled(topics: Command, topic: str, *flags: str) -> None:
    topics.good("topic", "create", topic, "--type", "queue", *flags)
    topics.good("write", topic, "1", "2", "3", "--tag", "a")


def test_jobs_are_claimed_acked_and_given_back_by_hand(topics: Command, topic: str) -> None:
    filled(topics, topic)
    one, two = topics.good("queue", "claim", topic, "--max", "2", "--lease", "1h")
    assert (one["$seq"], one["data"], one["$tag"], one["deliveries"]) == (1, 1, "a", 1)
    assert one["deadline"] > one["$ts"] and one["lease_id"] != two["lease_id"]
    (done,) = topics.good("queue", "ack", topic, "1", "--lease-id", one["lease_id"])
    assert (done["acked"], done["skipped"], done["ready"], done["in_flight"]) == (1, [], 1, 1)
    (done,) = topics.good("queue", "nack", topic, "2", "--delay", "1h")
    assert (done["nacked"], done["ready"], done["in_flight"]) == (1, 1, 0)
    (state,) = topics.good("queue", "show", topic)
    assert (state["queue"], state["ready"], state["in_flight"], state["delayed"]) == (topic, 1, 0, 1)


def test_a_job_that_is_not_yours_is_told_and_fails(topics: Command, topic: str) -> None:
    filled(topics, topic)
    topics.good("queue", "claim", topic, "--node", "somebody")
    said = topics("queue", "ack", topic, "1", "2", "--no-json")
    assert (said.code, said.out.strip()) == (1, "0 jobs done; not 1, 2, which topics-queue does not have (any more)")
    said = topics("queue", "nack", topic, "1", "--no-json", "--node", "somebody")
    assert (said.code, said.out.strip()) == (0, "1 job given back")


def test_nothing_to_claim_is_said_and_no_error(topics: Command, topic: str) -> None:
    topics.good("topic", "create", topic, "--type", "queue")
    assert topics.good("queue", "claim", topic) == []
    said = topics("queue", "claim", topic, "--no-json", "--wait", "1ms")
    assert (said.code, said.out, said.err.strip()) == (0, "", "there is nothing to do")


def test_what_is_no_queue_is_refused_with_what_to_do(topics: Command, topic: str) -> None:
    topics.good("write", topic, "1")
    for command in ("show", "claim"):
        said = topics("queue", command, topic)
        assert said.code == 4 and "not a queue" in said.err and "--type queue" in said.err
    assert topics("queue", "claim", "missing").code == 3
    said = topics("queue", "claim", topic, "--lease", "soon")
    assert said.code == 2 and "--lease=soon: expected a duration" in said.err


def test_queues_are_listed_and_other_topics_are_not(topics: Command, topic: str) -> None:
    filled(topics, f"{topic}-b", "--dead-letter", f"{topic}-dead")
    topics.good("topic", "create", f"{topic}-a", "--type", "queue", "--partitions", "2")
    topics.good("write", f"{topic}-a", "1", "--partition", "1")
    topics.good("write", f"{topic}-log", "1")
    first, second = topics.good("queue", "ls", topic)
    assert (first["queue"], first["ready"], first["partitions"]) == (f"{topic}-a", 1, 2)
    assert (second["queue"], second["ready"], second["dead_letter"]) == (f"{topic}-b", 3, f"{topic}-dead")
    table = topics("queue", "ls", topic, "--no-json").out
    assert f"{topic}-b" in table and f"{topic}-log" not in table
    assert "no queues yet" in topics("queue", "ls", "none-of-these", "--no-json").out


def test_dead_letters_are_shown_and_taken_back(topics: Command, topic: str) -> None:
    dead = f"{topic}-dead"
    filled(topics, topic, "--max-deliveries", "1", "--dead-letter", dead)
    assert topics.good("queue", "dead", topic) == [], "there is none yet"
    topics.good("queue", "claim", topic, "-n", "3")
    topics.good("queue", "nack", topic, "1", "2", "3")
    topics.good("queue", "claim", topic, "-n", "3")
    first, _, _ = topics.good("queue", "dead", topic)
    assert (first["data"], first["meta"]["$dead_letter_from"]) == (1, topic)
    said = topics("queue", "dead", topic, "--limit", "1")
    assert (len(said.lines), said.err.strip()) == (1, "stopped after 1 dead letter; --limit names another number")
    assert topics.good("queue", "dead", topic, "--tag", "b") == []
    (told,) = topics.good("queue", "redrive", topic, "--dry-run")
    assert (told["moved"], told["dry_run"]) == (3, True)
    said = topics("queue", "redrive", topic, "--limit", "2", "--rate", "1000", "--no-json")
    assert said.out.strip() == f"2 dead letters are back in {topic}"
    (state,) = topics.good("queue", "show", topic)
    assert (state["ready"], state["dead_lettered"]) == (2, 3)


def test_deleted_dead_letter_topic_holds_no_dead_letter(topics: Command, topic: str) -> None:
    filled(topics, topic, "--dead-letter", f"{topic}-dead")
    topics.good("topic", "rm", f"{topic}-dead", "--yes")
    assert topics.good("queue", "dead", topic) == []
    (told,) = topics.good("queue", "redrive", topic)
    assert (told["moved"], told["skipped"]) == (0, 0)
    refused = topics("queue", "dead", topic, "--dead-letter", f"{topic}-dead")
    assert refused.code and "does not exist" in refused.err


def test_a_queue_without_dead_letters_says_how_to_have_them(topics: Command, topic: str) -> None:
    filled(topics, topic)
    for command in ("dead", "redrive"):
        said = topics("queue", command, topic)
        assert said.code == 2 and f"`topics topic config {topic} --dead-letter NAME`" in said.err


def test_jobs_are_put_for_now_and_for_later(topics: Command, topic: str) -> None:
    (done,) = topics.good("queue", "put", topic, '{"a": 1}', "2", "--tag", "t")
    assert (done["first_seq"], done["last_seq"], done["created"]) == (1, 2, True)
    topics.good("queue", "put", topic, "3", "--delay", "1h")
    topics.good("queue", "put", topic, "4", "--not-before", "2126-01-01T09:00+02:00")
    once = ("queue", "put", topic, "5", "--not-before", "2026-01-01", "--idempotency-key", "once")
    assert [topics.good(*once)[0]["deduped"] for _ in range(2)] == [False, True]
    (state,) = topics.good("queue", "show", topic)
    assert (state["ready"], state["delayed"]) == (3, 2)
    assert [(job["data"], job.get("$tag")) for job in topics.good("queue", "claim", topic, "--max", "9")] == [
        ({"a": 1}, "t"),
        (2, "t"),
        (5, None),
    ]
    said = topics("queue", "put", topic, "6", "7", "--no-json")
    assert (said.code, said.out.strip()) == (0, "2 jobs put as 6 to 7")


def test_what_is_no_job_and_no_time_is_refused(topics: Command, topic: str) -> None:
    for arguments, message in [
        ((), "there is no job to put"),
        (("{",), "DATA 1: it is not JSON"),
        (("1", "--delay", "soon"), "--delay=soon: expected a duration"),
        (("1", "--not-before", "soon"), "--not-before=soon: expected a time like"),
    ]:
        said = topics("queue", "put", topic, *arguments)
        assert said.code == 2 and message in said.err
    assert topics("queue", "show", topic).code == 3, "nothing was made"
    topics.good("write", topic, "1")
    said = topics("queue", "put", topic, "1", "--delay", "1h")
    assert said.code == 4 and "cannot be delayed" in said.err


def test_jobs_are_kept_for_longer(topics: Command, topic: str) -> None:
    filled(topics, topic)
    (job,) = topics.good("queue", "claim", topic, "--lease", "1min")
    (done,) = topics.good("queue", "extend", topic, "1", "--lease", "1h", "--lease-id", job["lease_id"])
    assert done["extended"] == 1 and done["deadlines"]["1"] > job["deadline"] + 1000
    said = topics("queue", "extend", topic, "1", "2", "--lease", "1h", "--no-json")
    assert (said.code, said.out.strip()) == (1, "1 job kept; not 2, which topics-queue does not have (any more)")


def test_who_holds_which_jobs(topics: Command, topic: str) -> None:
    filled(topics, topic)
    topics.good("queue", "put", topic, '"later"', "--delay", "1h")
    (job,) = topics.good("queue", "claim", topic, "--node", "me", "--lease", "1h")
    (lease,) = topics.good("queue", "leases", topic)
    assert (lease["seq"], lease["partition"], lease["node"], lease["deliveries"]) == (1, 0, "me", 1)
    assert (lease["lease_id"], lease["deadline"]) == (job["lease_id"], job["deadline"])
    (delayed,) = topics.good("queue", "leases", topic, "--delayed")
    assert (delayed["seq"], delayed["node"], delayed["lease_id"]) == (4, None, None)
    said = topics("queue", "leases", topic, "--no-json")
    assert said.code == 0 and "me" in said.out and job["lease_id"] in said.out
    topics.good("queue", "claim", topic, "--node", "me", "--lease", "1h")
    said = topics("queue", "leases", topic, "--limit", "1")
    assert (said.code, len(said.out.splitlines()), "there are more than 1" in said.err) == (0, 1, True)
    topics.good("topic", "create", f"{topic}.empty", "--type", "queue")
    assert topics("queue", "leases", f"{topic}.empty", "--no-json").out.strip() == "nobody holds a job"


def test_for_people(topics: Command, topic: str) -> None:
    topics.good("topic", "create", topic, "--type", "queue")
    topics.good("write", topic, '{"send": "welcome"}', "--node", "shop", "--meta", "trace=17")
    shown = topics("queue", "claim", topic, "--no-json")
    assert (shown.code, shown.err) == (0, "")
    assert '{"send":"welcome"}' in shown.out and "trace" in shown.out and shown.out.endswith(", delivery 1\n")
    topics.good("queue", "nack", topic, "1")
    (job,) = topics.good("queue", "claim", topic)
    assert (job["$node"], job["meta"], job["deliveries"]) == ("shop", {"trace": "17"}, 2)


def test_dead_letters_of_several_partitions(topics: Command, topic: str) -> None:
    topics.good("topic", "create", f"{topic}-dead", "--partitions", "2")
    topics.good("topic", "create", topic, "--type", "queue", "--dead-letter", f"{topic}-dead")
    for partition in ("0", "1"):
        died = ("--meta", f"$dead_letter_from={topic}", "--partition", partition)
        topics.good("write", f"{topic}-dead", '"letter"', *died)
    shown = topics("queue", "dead", topic, "--no-json").out.splitlines()
    assert len(shown) == 2 and all('"letter"' in line for line in shown)
    said = topics("queue", "dead", topic, "--limit", "0")
    assert said.code == 2 and "--limit must be at least 1, not 0" in said.err
    (told,) = topics.good("queue", "redrive", topic, "--limit", "1")
    assert told["moved"] == 1, "the limit is one of all partitions"
