"""The TOML file of settings that a command line names with `--config`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping

from topics.errors import InvalidSetting
from topics.storage.fs import RealFs


def read_config(path: str) -> Mapping[str, object]:
    """The keys of a TOML file."""
    try:
        file = RealFs().open(path, "read")
        try:
            return tomllib.loads(file.read_at(0, file.size()).decode())
        finally:
            file.close()
    except OSError as error:
        raise InvalidSetting(f"--config={path}: {error.strerror}; expected a TOML file", settings=["config"]) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        message = f"--config={path}: {error}; expected a TOML file with lines like `port = 4000`"
        raise InvalidSetting(message, settings=["config"]) from error
