"""`topics serve`: the server in the foreground, until a signal.

SIGTERM or SIGINT drains and ends with 0. From then on both have their usual effect: a second one ends the process at
once, which costs a recovery and nothing that was acked.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import signal
import sys
from collections.abc import Mapping, MutableMapping
from os import environ
from typing import Annotated

from cyclopts import Parameter

from topics.cli.eventloop import loop_factory
from topics.clock import SystemClock
from topics.errors import Damaged, NotUnderstood
from topics.server.app import Server
from topics.server.logs import configure, fields
from topics.server.openfiles import raise_file_limit
from topics.settings import TABLE, Setting, Settings, Unit, load, origins, show
from topics.storage.fs import is_open_to_others

log = logging.getLogger(__name__)

EXIT_FAILED = 1
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def serve(*, config: str | None = None, **flags: str | bool | None) -> int:
    """Start the server on the data directory.

    Each setting is a flag, a TOPICS_* variable and a key of the TOML file; a flag goes before a variable, a variable
    before the file. Ends with 0 after SIGTERM or Ctrl-C, 1 when the data is damaged and 2 when it cannot start. For
    example:

        topics serve --port 4000 --data-dir ./elsewhere
    """
    given = {key: value for key, value in flags.items() if value is not None}
    document = {} if config is None else _document(config)
    settings, said = load(environ, given, document), origins(environ, given, document)
    forget_secrets(environ)
    configure(settings, sys.stderr)
    raise_file_limit()
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_serve(settings, said))
    except NotUnderstood as other:
        _complain(other.message, other.code)
        return EXIT_FAILED
    except Damaged as damage:
        hint = f"`topics fsck {settings.data_dir}` says what is left, `--repair` keeps everything readable"
        _complain(damage.message if "topics fsck" in damage.message else f"{damage.message}; {hint}", damage.code)
        return EXIT_FAILED
    except OSError as error:
        hint = f"see to the disk of {settings.data_dir} and start again; what was acked is kept"
        _complain(f"the disk refuses: {error}; {hint}", "io_error")
        return EXIT_FAILED
    return 0


async def _serve(settings: Settings, said: Mapping[str, str]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, _begin_stop, loop, stop)
    try:
        async with Server(settings, SystemClock(), origins=said) as server:
            if await server.ready_before(stop):
                # What was recovered lives as long as the process: a collection of garbage need not look at it again,
                # which with 100,000 topics would stop the loop for a second or two each time.
                gc.freeze()
                if sys.stderr.isatty():
                    _show_banner(settings, server)
                _warn_of_others(settings.data_dir)
                if server.set_up_link:
                    _show_set_up(server)
            await stop.wait()
    finally:
        # Those that are left when it could not start belong to a loop that is about to end.
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)
    # A recovery that failed behind the signal's back is a failure all the same.
    await server.ready()


def _begin_stop(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    for number in STOP_SIGNALS:
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)
    stop.set()


def forget_secrets(variables: MutableMapping[str, str]) -> None:
    """Take secrets out of the environment once they are read: no child and no dump of the environment has them."""
    for setting in TABLE:
        if setting.about.unit is Unit.SECRET:
            variables.pop(setting.variable, None)


# A server starts in a third of a second, most of which is importing. What it needs only for a file, a terminal or a
# failure is imported here, when there is one.


def _document(path: str) -> dict[str, object]:
    from topics.cli.configfile import read_config

    return dict(read_config(path))


def _show_banner(settings: Settings, server: Server) -> None:
    from rich.console import Console

    from topics.server.banner import show_banner

    console = Console(stderr=True)
    show_banner(
        console,
        settings,
        server.url,
        key_count=server.key_count,
        topic_count=server.topic_count,
        grpc_address=server.grpc_address,
    )


def _show_set_up(server: Server) -> None:
    """Show a person the link, which works once, for an hour, while there is no user. What is no terminal is a log, in
    which a link to become an admin has no place: it goes into a file."""
    if sys.stderr.isatty():
        said = f"No user yet. Open this within the hour to make the first one, an admin:\n\n    {server.set_up_link}\n"
    else:
        from msgspec import json

        hint = "open the link in this file within the hour to make the first user, an admin"
        said = json.encode({"event": "set up", "file": server.keep_set_up_link(), "hint": hint}).decode()
    sys.stderr.write(said + "\n")
    sys.stderr.flush()


def _warn_of_others(directory: str) -> None:
    """Directories that are made now are their owner's; one that was there before is as somebody made it."""
    if is_open_to_others(directory):
        log.warning(
            "every user of this machine may look into the data directory: chmod 700 it", extra=fields(dir=directory)
        )


def _complain(message: str, code: str) -> None:
    from topics.cli.complaint import say

    say(message, code)


# ---- its flags


def _parameter(setting: Setting) -> inspect.Parameter:
    about = setting.about
    default = "" if setting.default is None else f" [default: {show(setting.default, about.unit)}]"
    told = Parameter(help=about.doc + default, negative="", show_default=False)
    annotation = Annotated[bool | None, told] if about.unit is Unit.FLAG else Annotated[str | None, told]
    return inspect.Parameter(setting.key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _declare_flags() -> None:
    """Give the command a flag for each row of the table, with its help."""
    about_config = Parameter(help="A TOML file with settings.")
    annotation = Annotated[str | None, about_config]
    config = inspect.Parameter("config", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
    parameters = [config, *map(_parameter, TABLE)]
    serve.__dict__["__signature__"] = inspect.Signature(parameters)
    serve.__annotations__.update({parameter.name: parameter.annotation for parameter in parameters})


_declare_flags()
