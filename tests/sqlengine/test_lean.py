from __future__ import annotations

import sys
from importlib.util import find_spec

import pytest

from topics.sqlengine.lean import do_without_pandas


def test_pandas_is_missing_and_other_modules_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    do_without_pandas()
    with pytest.raises(ModuleNotFoundError) as raised:
        __import__("pandas")
    assert raised.value.name == "pandas"
    assert find_spec("json") is not None and find_spec("nothing_of_this_name") is None
