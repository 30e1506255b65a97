"""`topics inspect`: the frames of a stored file, or the files of a directory, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from topics.cli.exitcode import Exit
from topics.cli.screen import JsonFlag, Screen, printable, sized
from topics.cli.target import require_directory
from topics.engine.anatomy import SUFFIXES, UNREADABLE, Part, dissect
from topics.errors import InvalidRequest, NotFound
from topics.storage.fs import RealFs

DIRECTORIES = ("wal", "segments", "snapshots")


def inspect(
    path: Annotated[str, Parameter(help="A WAL file, segment, index or snapshot; or a data directory.")],
    /,
    *,
    records: Annotated[
        bool, Parameter(negative="", show_default=False, help="Show the records that frames hold, too.")
    ] = False,
    log: Annotated[int | None, Parameter(help="Only frames of this log id; 0 is the meta log.")] = None,
    limit: Annotated[
        int | None, Parameter(name=["--limit", "-n"], help="Frames at most; all when not named.", show_default=False)
    ] = None,
    json: JsonFlag = None,
) -> int:
    """Show what is in the files of a data directory, frame by frame.

    Reads only, and needs no server; in a directory that is in use, what is just being written may look cut off. Ends
    with 1 when something is no readable frame. docs/FORMAT.md explains what the frames are. For example:

        topics inspect ./data
        topics inspect ./elsewhere/segments/000000000001.data --records
    """
    screen = Screen(json)
    fs = RealFs()
    if not fs.exists(path):
        raise NotFound(f"{path} does not exist; expected a data directory or a file of one")
    try:
        if path.endswith(SUFFIXES):
            return _file(screen, fs, path, records, log, limit)
        return _directory(screen, fs, path.rstrip("/"))
    except OSError as error:
        raise InvalidRequest(f"{path}: {error.strerror}; expected a data directory or a file of one") from None


def _file(screen: Screen, fs: RealFs, path: str, records: bool, log: int | None, limit: int | None) -> int:
    unreadable = False
    shown = 0
    for part in dissect(fs, path, records):
        unreadable |= part.kind == UNREADABLE
        if (log is not None and part.log_id != log) or shown == limit:
            continue
        shown += 1
        if screen.as_json:
            screen.lines(_json_lines(part))
        else:
            _print(screen, part)
    return Exit.FAILED if unreadable else Exit.OK


def _json_lines(part: Part) -> Iterator[bytes]:
    fields: dict[str, object] = {"offset": part.offset, "bytes": part.size_bytes, "kind": part.kind}
    fields |= {"log_id": part.log_id, "position": part.position, "mark": part.mark, "about": part.about}
    if part.records is not None:
        fields["records"] = [msgspec.Raw(text) for text in part.records]
    yield msgspec.json.format(msgspec.json.encode(fields), indent=-1)


def _print(screen: Screen, part: Part) -> None:
    about = "  ".join(f"{name}={_shown(value)}" for name, value in (part.about or {}).items())
    style = "bold red" if part.kind == UNREADABLE else "dim" if part.kind in ("ZEROS", "SYNC_MARK") else "bold"
    line = Text.assemble(
        (f"{part.offset:>12}  ", "cyan"),
        f"{part.size_bytes:>10}  ",
        (f"{part.kind:<12}", style),
        f"log {part.log_id:<5} at {part.position:<8} ",
        printable(about),
    )
    screen.out.print(line, soft_wrap=True)
    for text in part.records or ():
        screen.out.print(Text(f"{'':>26}{printable(text.decode('utf-8', 'replace'))}", style="green"), soft_wrap=True)


def _shown(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _directory(screen: Screen, fs: RealFs, path: str) -> int:
    require_directory(path)
    table = Table(header_style="bold")
    table.add_column("file", overflow="fold", style="cyan")
    for name in ("size", "frames", "records"):
        table.add_column(name, justify="right")
    table.add_column("what is in it", overflow="fold")
    unreadable = False
    for file in _files(fs, path):
        kinds, records, size_bytes = _census(fs, f"{path}/{file}")
        unreadable |= kinds[UNREADABLE] > 0
        frames = sum(kinds.values()) - kinds["ZEROS"] - kinds[UNREADABLE]
        if screen.as_json:
            fields = {"file": file, "bytes": size_bytes, "frames": frames, "records": records, "kinds": kinds}
            screen.lines([msgspec.json.encode(fields)])
        else:
            style = "red" if kinds[UNREADABLE] else ""
            held = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
            table.add_row(Text(file), sized(size_bytes), f"{frames:,}", f"{records:,}", held, style=style)
    if not screen.as_json:
        screen.out.print(table)
    return Exit.FAILED if unreadable else Exit.OK


def _files(fs: RealFs, path: str) -> Iterator[str]:
    for directory in DIRECTORIES:
        for name in fs.list(f"{path}/{directory}"):
            if name.endswith(SUFFIXES):
                yield f"{directory}/{name}"


def _census(fs: RealFs, path: str) -> tuple[Counter[str], int, int]:
    """How many frames of each kind a file has, how many records, how many bytes."""
    kinds: Counter[str] = Counter()
    records = size_bytes = 0
    for part in dissect(fs, path):
        kinds[part.kind] += 1
        size_bytes += part.size_bytes
        if part.kind in ("APPENDED", "BLOCK"):
            records += (part.about or {}).get("count", 0)
    return kinds, records, size_bytes
