from __future__ import annotations

import json
import resource
import subprocess
import sys

import pytest

from topics.server.openfiles import FILES_LOW, raise_file_limit

# A limit that is lowered stays low, so this is for a process of its own.
CODE = """
import json, logging, resource, sys
from topics.server.openfiles import connections_max, raise_file_limit, reserved_files
soft, hard = map(int, sys.argv[1:])
said = []
handler = logging.Handler()
handler.emit = lambda record: said.append([record.getMessage(), record.fields])
logging.getLogger("topics").addHandler(handler)
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
limit = raise_file_limit()
in_effect = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
print(json.dumps([limit, in_effect, connections_max(), reserved_files(), said]))
"""


@pytest.mark.parametrize(("soft", "hard"), [(64, 256), (256, 256)])
def test_the_limit_is_raised_as_far_as_it_goes_and_a_low_one_is_told(soft: int, hard: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(soft), str(hard)], capture_output=True, text=True, check=True
    )
    limit, in_effect, connections, reserved, said = json.loads(done.stdout)
    assert limit == in_effect == hard
    assert connections == reserved == hard // 2
    ((event, fields),) = said
    assert "the limit of open files is low" in event
    assert fields["open_files_max"] == hard
    assert str(FILES_LOW) in fields["todo"] and "LimitNOFILE" in fields["todo"]


def test_a_high_limit_is_no_news() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, "64", str(FILES_LOW)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"the system allows fewer than {FILES_LOW} open files")
    limit, in_effect, connections, reserved, said = json.loads(done.stdout)
    assert (limit, in_effect, said) == (FILES_LOW, FILES_LOW, [])
    assert connections + reserved == FILES_LOW
    assert connections > 10_000


def test_a_limit_that_cannot_be_raised_is_told_and_kept(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(kind: int, limits: tuple[int, int]) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda kind: (64, 256))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert raise_file_limit() == 64
    refused, low = caplog.records
    assert refused.message == "the limit of open files cannot be raised"
    assert vars(refused)["fields"]["open_files_max"] == 64
    assert "not allowed" in str(vars(refused)["fields"]["error"])
    assert "few connections fit" in low.message
