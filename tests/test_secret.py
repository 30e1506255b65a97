from __future__ import annotations

import copy
import pickle
from dataclasses import asdict, replace

import pytest

from topics.cli import run
from topics.errors import InvalidSetting
from topics.secret import Secret
from topics.settings import Settings, build, load

TEXT = "hunter2:read"


def test_a_secret_does_not_show() -> None:
    secret = Secret(TEXT)
    settings = Settings(api_keys=secret)
    for shown in (repr(secret), str(secret), f"{secret}", repr(settings), repr([secret])):
        assert "hunter2" not in shown
    with pytest.raises(TypeError):
        pickle.dumps(secret)


def test_it_is_taken_once() -> None:
    secret = Secret(TEXT)
    assert secret.take() == TEXT
    assert secret.take() == ""


def test_taking_it_empties_every_copy() -> None:
    settings = load({"TOPICS_API_KEYS": TEXT})
    copies = [replace(settings, port=1), build(asdict(settings)), copy.deepcopy(settings), copy.copy(settings)]
    assert settings.api_keys is not None
    assert copy.copy(settings.api_keys) is settings.api_keys
    assert settings.api_keys.take() == TEXT
    assert [each.api_keys.take() for each in copies if each.api_keys is not None] == ["", "", "", ""]


def test_a_secret_of_another_type_is_refused_without_showing_it() -> None:
    with pytest.raises(InvalidSetting, match=r"TOPICS_API_KEYS=\*\*\*: expected a secret, or nothing") as caught:
        build({"api_keys": "hunter2"})
    assert "hunter2" not in str(caught.value)
    with pytest.raises(InvalidSetting) as caught:
        load({}, document={"api_keys": ["hunter2"]})
    assert "hunter2" not in str(caught.value)


def test_an_empty_variable_is_no_secret() -> None:
    assert load({"TOPICS_API_KEYS": " "}).api_keys is None


def test_a_listing_of_the_settings_does_not_show_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOPICS_API_KEYS", TEXT)
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["settings"]) == 0
    shown = capsys.readouterr().out
    assert "TOPICS_API_KEYS" in shown and "***" in shown and "hunter2" not in shown
