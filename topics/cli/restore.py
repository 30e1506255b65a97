"""`topics restore`: a data directory out of a backup, checked before it gets its name."""

from __future__ import annotations

import secrets
from typing import Annotated

from cyclopts import Parameter
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from topics.cli.backup import moment
from topics.cli.exitcode import Exit
from topics.cli.screen import JsonFlag, Screen, counted, sized
from topics.clock import SystemClock
from topics.engine.opening import SALT_BITS, options
from topics.engine.unpacking import Restored, archive_bytes, restore_archive
from topics.settings import load
from topics.storage.fs import RealFs

COLUMNS = (TextColumn("restoring"), BarColumn(), DownloadColumn(binary_units=True), TimeRemainingColumn())


def restore(
    archive: Annotated[str, Parameter(help="A file that `topics backup` made.")],
    directory: Annotated[str, Parameter(help="The data directory to make, which must not be there, or be empty.")],
    /,
    *,
    json: JsonFlag = None,
) -> int:
    """Make a data directory out of a backup.

    Every byte is checked twice: against the checksums of the archive, and as `topics fsck` does. Only then does the
    directory get its name; whatever goes wrong before leaves nothing behind. For example:

        topics restore topics.tar.gz ./restored
        topics serve --data-dir ./restored
    """
    screen = Screen(json)
    fs = RealFs()
    with screen.progress(*COLUMNS) as progress:
        task = progress.add_task("restoring", total=archive_bytes(fs, archive))
        done = restore_archive(
            fs,
            archive,
            directory,
            SystemClock(),
            lambda: secrets.randbits(SALT_BITS),
            options(load()),
            lambda count: progress.advance(task, count),
        )
    screen.show(done, lambda: Text(_said(done), style="green"))
    return Exit.OK


def _said(done: Restored) -> str:
    held = f"{counted(done.topics, 'topic')}, {counted(done.records, 'record')}, {sized(done.bytes)}"
    return (
        f"{done.directory} holds {held}, as of {moment(done.created_ms)}; "
        f"`topics serve --data-dir {done.directory}` serves it"
    )
