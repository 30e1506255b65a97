from __future__ import annotations

from typing import Any

import pytest

from topics.client.fields import CONFIG_NAMES, check_config, check_records
from topics.errors import InvalidRequest
from topics.model import TopicConfig


def test_every_config_field_can_be_named() -> None:
    assert set(TopicConfig.__struct_fields__) | {"durable"} == CONFIG_NAMES


def test_known_fields_pass_unchanged() -> None:
    fields = {"ttl_ms": 5, "durable": True}
    assert check_config(fields) is fields
    assert check_records({"data": n} for n in range(2)) == [{"data": 0}, {"data": 1}]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"ttl": 5}, "config has no field ttl; did you mean ttl_ms?"),
        ({"zzz": 5}, "config has no field zzz; there are alias, auto_create, "),
    ],
)
def test_an_unknown_config_field_is_named(fields: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_config(fields)
    assert refused.value.message.startswith(said)
    assert refused.value.detail["field"] == f"config.{next(iter(fields))}"


def test_an_unknown_record_field_is_named_with_its_place() -> None:
    records: list[Any] = [{"data": 1}, {"data": 2, "tags": "x"}]
    with pytest.raises(InvalidRequest, match=r"records\[1\] has no field tags; did you mean tag\?"):
        check_records(records)


def test_what_is_no_mapping_is_left_to_the_engine_to_refuse() -> None:
    records: list[Any] = [5]
    assert check_records(records) == [5]


@pytest.mark.parametrize("wrong", [5, "a", b"a", None])
def test_what_holds_no_records_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidRequest, match=f"records must be a sequence of mappings, not {type(wrong).__name__}"):
        check_records(wrong)


def test_what_is_no_config_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="config must be a mapping of names to values, not list"):
        check_config([])  # type: ignore[arg-type]
