"""`topics backup`: everything into one file, while the server works on; and whether such a file is whole."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from cyclopts import Parameter
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from topics.cli.exitcode import Exit
from topics.cli.screen import JsonFlag, Screen, counted, sized
from topics.cli.target import DEFAULT_TARGET, Target
from topics.client import Client
from topics.engine.unpacking import Contents, archive_bytes, verify_archive
from topics.storage.archive import GZIP_LEVEL_MAX, check_level
from topics.storage.fs import RealFs

GZIP_SUFFIX = ".gz"
GZIP_LEVEL_DEFAULT = 6

COLUMNS = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True), TimeRemainingColumn())


def backup(
    archive: Annotated[str, Parameter(help="The file to make, which must not be there; `.gz` compresses it.")],
    /,
    *,
    gzip: Annotated[
        int | None,
        Parameter(
            help=f"How much to compress, from 0 (not) to {GZIP_LEVEL_MAX}; without it, the name decides.",
            show_default=False,
        ),
    ] = None,
    verify: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="Make nothing: check the checksums of a file that is there."),
    ] = False,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Save all topics, as they are at this moment, into one file. Writers and readers are not held up.

    All that was answered before is in it, and nothing that came later; `ephemeral` records are not. It is read back and
    verified before the command ends. A key for it needs the scope `admin`. For example:

        topics backup topics.tar.gz
        topics backup topics.tar --dir ./elsewhere
        topics backup --verify topics.tar.gz
    """
    screen = Screen(json)
    if not verify:
        level = check_level(gzip if gzip is not None else _level_of(archive))
        with screen.progress(*COLUMNS) as progress:
            task = progress.add_task("backing up", total=None)

            async def work(client: Client) -> None:
                await client.backup(
                    archive,
                    gzip=level,
                    on_progress=lambda done, total: progress.update(
                        task, completed=done, total=None if level else max(done, total)
                    ),
                )

            target.run(work)
    contents = _verified(screen, archive)
    screen.show(contents, lambda: Text(_said(contents, made=not verify), style="green"))
    return Exit.OK


def _level_of(archive: str) -> int:
    return GZIP_LEVEL_DEFAULT if archive.endswith(GZIP_SUFFIX) else 0


def _verified(screen: Screen, archive: str) -> Contents:
    fs = RealFs()
    with screen.progress(*COLUMNS) as progress:
        task = progress.add_task("verifying", total=archive_bytes(fs, archive))
        return verify_archive(fs, archive, lambda count: progress.advance(task, count))


def _said(contents: Contents, made: bool) -> str:
    what = f"{counted(contents.files, 'file')}, {sized(contents.bytes)}, as of {moment(contents.created_ms)}"
    return f"{contents.archive} is {'made and ' if made else ''}whole: {what}"


def moment(at_ms: int) -> str:
    """A time as people write it, in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
