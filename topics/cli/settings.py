"""`topics settings`: the table of settings, for a person or as `docs/SETTINGS.md`."""

from __future__ import annotations

from os import environ
from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.table import Table

from topics.cli.configfile import read_config
from topics.cli.screen import JsonFlag, Screen
from topics.secret import Secret
from topics.settings import TABLE, Setting, Settings, Unit, load, show, strangers

_INTRODUCTION = """\
# Settings

Generated from `topics/settings.py` by `make docs`; do not edit.

A setting is an environment variable, a flag of `topics serve` and a key of the TOML file that `topics serve --config`
names: `TOPICS_WAL_SHARDS=4`, `--wal-shards 4`, `wal_shards = 4`. A flag goes before a variable, a variable before the
file. A flag that is true or false needs no value: `--access-log`.

Sizes take `B`, `KiB`, `MiB`, `GiB` and `TiB` (a bare number is bytes), durations `ms`, `s`, `min`, `h` and `d` (a bare
number is milliseconds). A value that cannot be used refuses to start, with a message that names the setting, the value
and what is accepted. `topics settings` shows what is in effect.

| variable | default | allowed | what it is |
|---|---|---|---|
"""


def settings(
    *,
    config: Annotated[str | None, Parameter(help="A TOML file with settings, as for `topics serve`.")] = None,
    markdown: Annotated[
        bool, Parameter(negative="", show_default=False, help="Print the defaults as Markdown (docs/SETTINGS.md).")
    ] = False,
    json: JsonFlag = None,
) -> None:
    """Show every setting, its value in effect and what it means.

    What differs from its default stands out. For example:

        TOPICS_HOT_BYTES=1GiB topics settings
    """
    screen = Screen(json)
    if markdown:
        screen.lines([as_markdown().encode().removesuffix(b"\n")])
        return
    values = load(environ, document=None if config is None else read_config(config))
    if screen.as_json:
        screen.lines(msgspec.json.encode(_fields(values, setting)) for setting in TABLE)
    else:
        screen.out.print(as_table(values))
    for name, hint in strangers(environ).items():
        screen.note(f"{name} is set but is no setting; {hint}", "yellow")


def _fields(values: Settings, setting: Setting) -> dict[str, object]:
    value = getattr(values, setting.key)
    return {
        "variable": setting.variable,
        "value": str(value) if isinstance(value, Secret) else value,
        "default": setting.default,
        "unit": setting.about.unit.value,
        "about": setting.about.doc,
    }


def as_table(values: Settings) -> Table:
    """The settings in effect; those that differ from their default stand out."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("variable", no_wrap=True)
    table.add_column("value", justify="right", overflow="fold")
    table.add_column("default", justify="right", style="dim")
    table.add_column("what it is")
    for setting in TABLE:
        value = getattr(values, setting.key)
        table.add_row(
            setting.variable,
            show(value, setting.about.unit),
            show(setting.default, setting.about.unit),
            setting.about.doc,
            style="" if value == setting.default else "bold green",
        )
    return table


def as_markdown() -> str:
    """The text of docs/SETTINGS.md."""
    return _INTRODUCTION + "".join(_row(setting) for setting in TABLE)


def _row(setting: Setting) -> str:
    default = show(setting.default, setting.about.unit)
    return f"| `{setting.variable}` | {default} | {_allowed(setting)} | {setting.about.doc} |\n"


def _allowed(setting: Setting) -> str:
    unit = setting.about.unit
    if setting.about.choices or unit is Unit.FLAG:
        return setting.accepts()
    if not isinstance(setting.default, int):
        return unit.value if setting.required else f"{unit.value}, or empty"
    low = show(setting.about.minimum, unit)
    return f"from {low}" if setting.about.maximum is None else f"{low} to {show(setting.about.maximum, unit)}"
