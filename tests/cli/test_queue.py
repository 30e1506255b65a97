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
    topics.good("topic", "create", dead)
    filled(topics, topic, "--max-deliveries", "1", "--dead-letter", dead)
    topics.good("queue", "claim", topic, "-n", "3")
    topics.good("queue", "nack", topic, "1", "2", "3")
    topics.good("queue", "claim", topic, "-n", "3")
    assert len(topics.good("tail", dead, "-n", "3")) == 3
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


def test_a_queue_without_dead_letters_says_how_to_have_them(topics: Command, topic: str) -> None:
    filled(topics, topic)
    for command in ("dead", "redrive"):
        said = topics("queue", command, topic)
        assert said.code == 2 and f"`topics topic config {topic} --dead-letter NAME`" in said.err
