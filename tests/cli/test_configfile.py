from __future__ import annotations

from pathlib import Path

import pytest

from topics.cli.configfile import read_config
from topics.errors import InvalidSetting


def test_the_keys_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "topics.toml"
    path.write_text('port = 4100\nhot_bytes = "1GiB"\n')
    assert read_config(str(path)) == {"port": 4100, "hot_bytes": "1GiB"}


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "No such file"), (b"port = ", "Invalid value"), (b"\xff", "expected a TOML file"), (b"a\n", "like `port")],
)
def test_a_file_that_cannot_be_read_is_named(content: bytes | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "topics.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidSetting) as refused:
        read_config(str(path))
    assert refused.value.message.startswith(f"--config={path}: ") and said in refused.value.message
