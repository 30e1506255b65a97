from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.errors import InvalidSetting
from topics.settings import TABLE, Setting, Settings, Unit, build, load, origins, parse_number, show, strangers


def test_an_empty_environment_gives_the_defaults() -> None:
    assert load({}) == Settings()


def test_the_table_has_a_row_for_every_field_in_order() -> None:
    assert [setting.key for setting in TABLE] == [field.name for field in fields(Settings)]
    assert TABLE[0].variable == "TOPICS_DATA_DIR"


def test_every_row_says_what_it_is() -> None:
    assert [setting.key for setting in TABLE if not setting.about.doc.endswith(".")] == []
    assert [setting.key for setting in TABLE if setting.key.endswith("_ms") != (setting.about.unit is Unit.MS)] == []
    assert [
        setting.key for setting in TABLE if setting.key.endswith("_bytes") != (setting.about.unit is Unit.BYTES)
    ] == []


def test_variables_are_read_in_their_units() -> None:
    settings = load(
        {
            "TOPICS_DATA_DIR": "/srv/topics",
            "TOPICS_HOT_BYTES": "1.5GiB",
            "TOPICS_DISK_SYNC_MS": "1 s",
            "TOPICS_SEGMENT_RECORDS": "2_000_000",
            "TOPICS_COLD_DIR": "/mnt/cold",
            "PATH": "/usr/bin",
        }
    )
    assert settings == Settings(
        data_dir="/srv/topics",
        hot_bytes=1536 * 1024 * 1024,
        disk_sync_ms=1000,
        segment_records=2_000_000,
        cold_dir="/mnt/cold",
    )


def test_an_empty_cold_dir_is_none() -> None:
    assert load({"TOPICS_COLD_DIR": ""}).cold_dir is None


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [
        ("64MiB", Unit.BYTES, 64 * 1024 * 1024),
        ("64 mib", Unit.BYTES, 64 * 1024 * 1024),
        ("0.5KiB", Unit.BYTES, 512),
        ("7", Unit.BYTES, 7),
        ("200ms", Unit.MS, 200),
        ("1h", Unit.MS, 3_600_000),
        ("1.5min", Unit.MS, 90_000),
        ("7d", Unit.MS, 604_800_000),
        ("10_000", Unit.COUNT, 10_000),
        ("64MB", Unit.BYTES, None),
        ("64M", Unit.BYTES, None),
        ("0.3B", Unit.BYTES, None),
        ("1h", Unit.BYTES, None),
        ("1m", Unit.MS, None),
        ("1.5", Unit.COUNT, None),
        ("3 s", Unit.COUNT, None),
        ("-1", Unit.COUNT, None),
        ("", Unit.COUNT, None),
        ("tcp://10.0.0.1:4000", Unit.COUNT, None),
        ("٣", Unit.COUNT, None),
    ],
)
def test_numbers(text: str, unit: Unit, number: int | None) -> None:
    assert parse_number(text, unit) == number


@given(st.integers(0, 2**63), st.sampled_from([Unit.COUNT, Unit.BYTES, Unit.MS]))
def test_what_is_shown_is_read_back(value: int, unit: Unit) -> None:
    assert parse_number(show(value, unit), unit) == value


def test_everything_wrong_with_an_environment_is_said_at_once() -> None:
    with pytest.raises(InvalidSetting) as caught:
        load({"TOPICS_PORT": "tcp://10.0.0.1:4000", "TOPICS_WAL_SHARDS": "0", "TOPICS_DATA_DIR": " "})
    assert caught.value.detail == {"settings": ["TOPICS_DATA_DIR", "TOPICS_PORT", "TOPICS_WAL_SHARDS"]}
    assert caught.value.message.splitlines()[1:] == [
        "TOPICS_PORT=tcp://10.0.0.1:4000: expected a whole number, from 0 to 65535",
        "TOPICS_WAL_SHARDS=0: expected a whole number, from 1 to 64",
    ]


NUMBERS = [setting for setting in TABLE if isinstance(setting.default, int) and setting.about.unit is not Unit.FLAG]


@pytest.mark.parametrize("setting", NUMBERS, ids=lambda s: s.key)
def test_bounds_hold_however_a_value_arrives(setting: Setting) -> None:
    about = setting.about
    assert load({setting.variable: str(about.minimum)}) == build({setting.key: about.minimum})
    outside = [about.minimum - 1] + ([] if about.maximum is None else [about.maximum + 1])
    for value in outside:
        with pytest.raises(InvalidSetting, match=f"{setting.variable}={value}: expected"):
            build({setting.key: value})


@pytest.mark.parametrize(
    ("key", "value"), [("wal_shards", "2"), ("wal_shards", True), ("wal_shards", None), ("data_dir", 3), ("host", "")]
)
def test_a_value_of_another_type_is_refused(key: str, value: str | int | None) -> None:
    with pytest.raises(InvalidSetting, match=f"TOPICS_{key.upper()}="):
        build({key: value})


def test_a_flag_goes_before_a_variable_and_a_variable_before_the_file() -> None:
    file: dict[str, object] = {"port": 1, "host": "a", "data_dir": "f", "hot_bytes": "1GiB", "access_log": True}
    settings = load({"TOPICS_PORT": "2", "TOPICS_HOST": "b"}, {"port": "3"}, file)
    assert (settings.port, settings.host, settings.data_dir, settings.access_log) == (3, "b", "f", True)
    assert settings.hot_bytes == 1 << 30


def test_what_is_wrong_is_said_under_the_name_it_came_by() -> None:
    file: dict[str, object] = {"wal_shards": 65, "prot": 1, "host": ["a"]}
    with pytest.raises(InvalidSetting) as refused:
        load({"TOPICS_ACCESS_LOG": "maybe"}, {"port": "many"}, file)
    assert refused.value.message.splitlines() == [
        "prot is not a setting; did you mean TOPICS_PORT?",
        "host=['a']: expected a text",
        "--port=many: expected a whole number, from 0 to 65535",
        "TOPICS_ACCESS_LOG=maybe: expected true or false",
        "wal_shards=65: expected a whole number, from 1 to 64",
    ]


@pytest.mark.parametrize(("text", "value"), [("true", True), ("1", True), ("On", True), ("no", False), ("0", False)])
def test_true_and_false_have_several_spellings(text: str, value: bool) -> None:
    assert load({"TOPICS_ACCESS_LOG": text}).access_log is value


def test_a_choice_is_one_of_the_named() -> None:
    assert load({"TOPICS_LOG_FORMAT": "json"}).log_format == "json"
    with pytest.raises(InvalidSetting, match="TOPICS_LOG_FORMAT=xml: expected one of auto, json, pretty"):
        load({"TOPICS_LOG_FORMAT": "xml"})


def test_an_unknown_key_is_refused_with_a_hint() -> None:
    with pytest.raises(InvalidSetting, match="wal_shard is not a setting; did you mean TOPICS_WAL_SHARDS"):
        build({"wal_shard": 2})


def test_the_cold_directory_is_another_one() -> None:
    with pytest.raises(InvalidSetting, match="TOPICS_COLD_DIR=/srv/t/: expected another directory"):
        Settings(data_dir="/srv/t", cold_dir="/srv/t/")


def test_strangers_are_named_with_the_nearest_setting() -> None:
    assert strangers(["TOPICS_WAL_SHARD", "TOPICS_ZZZZ", "TOPICS_PORT", "HOME"]) == {
        "TOPICS_WAL_SHARD": "did you mean TOPICS_WAL_SHARDS?",
        "TOPICS_ZZZZ": "see `topics settings`",
    }


def test_the_last_word_is_where_a_value_comes_from() -> None:
    variables = {"TOPICS_WAL_SHARDS": "3", "TOPICS_PORT": "1"}
    said = origins(variables, {"port": "2"}, {"wal_shards": 4, "hot_bytes": "1GiB"})
    assert said == {"wal_shards": "TOPICS_WAL_SHARDS", "port": "--port", "hot_bytes": "file"}
