from __future__ import annotations

import pytest

from topics.core.names import check_router, check_topic, shorten
from topics.errors import InvalidRequest


@pytest.mark.parametrize("name", ["a", "0", "render-queue:tenantA", "A.b_c:d-e", "x" * 255])
def test_good_topic_names(name: str) -> None:
    assert check_topic(name) == name
    assert check_router(name) == name


@pytest.mark.parametrize("name", ["", ".a", "-a", ":a", "_a", "a b", "a/b", "a>b", "ä", "a\n", "x" * 256, "a\x00"])
def test_bad_topic_names_are_refused_with_field_value_and_rule(name: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_topic(name, "source")
    detail = caught.value.detail
    assert detail["field"] == "source"
    assert detail["value"] == shorten(name)
    assert detail["expected"] == "^[A-Za-z0-9][A-Za-z0-9._:-]{0,254}$"
    assert len(caught.value.message) < 200


def test_a_router_may_carry_its_default_name() -> None:
    assert check_router("orders->audit") == "orders->audit"
    with pytest.raises(InvalidRequest):
        check_router(">orders")


def test_a_refusal_is_not_remembered_as_good() -> None:
    for _ in range(2):
        with pytest.raises(InvalidRequest):
            check_topic("no/slash")
