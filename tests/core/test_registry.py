from __future__ import annotations

import pytest

from topics.core.auditchain import AUDIT_TOPIC
from topics.core.registry import Registry, Topic
from topics.errors import NameTaken
from topics.model import Durability, TopicConfig, TopicType


def registry(*names: str) -> Registry:
    made = Registry()
    for number, name in enumerate(names, 1):
        made.add(Topic(name, TopicConfig(), epoch=number, first_log_id=number, created_ms=0))
    return made


def names(topics: list[Topic]) -> list[str]:
    return [topic.name for topic in topics]


def test_topics_are_listed_by_name_page_by_page() -> None:
    topics = registry("b", "a:2", "c", "a:1", "a")
    assert names(topics.page("", "", 10)) == ["a", "a:1", "a:2", "b", "c"]
    assert names(topics.page("", "", 2)) == ["a", "a:1"]
    assert names(topics.page("a:1", "", 2)) == ["a:2", "b"]
    assert names(topics.page("c", "", 2)) == []
    assert names(topics.page("a:15", "", 1)) == ["a:2"], "the name need not exist any more"


def test_a_prefix_bounds_the_list() -> None:
    topics = registry("a", "ab", "abc", "b")
    assert names(topics.page("", "ab", 10)) == ["ab", "abc"]
    assert names(topics.page("ab", "ab", 10)) == ["abc"]
    assert names(topics.page("abc", "ab", 10)) == []
    assert names(topics.page("zz", "ab", 10)) == []
    assert names(topics.page("a", "b", 10)) == ["b"]


def test_a_removed_topic_is_gone_and_its_name_free() -> None:
    topics = registry("a", "b", "c")
    assert topics.remove("b").first_log_id == 2
    assert topics.get("b") is None and len(topics) == 2
    assert names(list(topics)) == ["a", "c"] == names(topics.page("", "", 10))
    topics.add(Topic("b", TopicConfig(), epoch=9, first_log_id=9, created_ms=0))
    found = topics.get("b")
    assert found is not None and found.epoch == 9
    with pytest.raises(AssertionError):
        topics.add(Topic("b", TopicConfig(), epoch=10, first_log_id=10, created_ms=0))


def test_a_topic_that_is_nobody_s_business_comes_and_goes_unseen() -> None:
    topics = registry("a", AUDIT_TOPIC)
    assert len(topics) == 1 and names(topics.page("", "", 10)) == ["a"] and topics.get(AUDIT_TOPIC) is not None
    topics.remove(AUDIT_TOPIC)
    assert len(topics) == 1 and names(topics.page("", "", 10)) == ["a"] and topics.get(AUDIT_TOPIC) is None


def test_a_topic_has_a_log_for_each_partition() -> None:
    assert list(Topic("t", TopicConfig(partitions=3), 1, 7, 0).log_ids()) == [7, 8, 9]


def test_it_counts_topics_by_what_they_are() -> None:
    topics = registry("a", "b")
    found = topics.get("a")
    assert found is not None
    topics.configure(found, TopicConfig(type=TopicType.QUEUE, durability=Durability.FSYNC))
    assert found.config.type is TopicType.QUEUE
    assert topics.by_class == {Durability.DISK: 1, Durability.FSYNC: 1}
    assert topics.by_type == {TopicType.LOG: 1, TopicType.QUEUE: 1}
    topics.remove("a")
    assert (topics.by_class[Durability.FSYNC], topics.by_type[TopicType.QUEUE]) == (0, 0)


def test_an_alias_stands_for_its_topic_until_it_has_another() -> None:
    topics = registry("a", "b")
    a, b = topics.get("a"), topics.get("b")
    assert a is not None and b is not None
    topics.configure(a, TopicConfig(alias="x"))
    assert topics.get("x") is a and topics.named("x") is None
    assert names(topics.page("", "", 10)) == ["a", "b"], "an alias is not listed"
    topics.check_alias("a", TopicConfig(alias="x"))
    for taken in ("x", "a"):
        with pytest.raises(NameTaken) as refused:
            topics.check_alias("b", TopicConfig(alias=taken))
        assert refused.value.detail == {"alias": taken, "topic": "a"}
    topics.configure(a, TopicConfig(alias="y"))
    assert topics.get("x") is None and topics.get("y") is a
    topics.configure(b, TopicConfig(alias="x"))
    assert topics.get("x") is b
    topics.remove("a")
    assert topics.get("y") is None


def test_an_alias_that_a_repair_left_twice_is_the_first_ones() -> None:
    topics = registry()
    topics.add(Topic("a", TopicConfig(alias="x"), 1, 1, 0))
    topics.add(Topic("b", TopicConfig(alias="x"), 2, 2, 0))
    topics.add(Topic("x", TopicConfig(), 3, 3, 0))
    assert topics.get("x") is topics.named("x") is not None
    topics.remove("b")
    topics.remove("x")
    assert topics.get("x") is topics.named("a")


def test_topics_with_equal_configs_share_one_object() -> None:
    topics = registry()
    for name in ("a", "b", "c"):
        topics.add(Topic(name, TopicConfig(ttl_ms=5), 1, 1, 0))
    a, b, c = (topics.get(name) for name in ("a", "b", "c"))
    assert a is not None and b is not None and c is not None
    assert a.config is b.config is c.config
    topics.configure(c, TopicConfig(ttl_ms=7))
    assert a.config.ttl_ms == b.config.ttl_ms == 5 and c.config.ttl_ms == 7
    topics.configure(c, TopicConfig(ttl_ms=5))
    assert c.config is a.config
    for name in ("a", "b", "c"):
        topics.remove(name)
    assert not topics._configs, "a config that no topic has is not kept"


def test_names_are_in_order_however_they_come() -> None:
    topics = registry("b", "d", "a", "c")
    assert names(topics.page("", "", 10)) == ["a", "b", "c", "d"]
