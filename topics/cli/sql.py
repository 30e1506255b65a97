"""`topics sql`: statements from the command line, a file, a pipe or a person at a terminal."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from topics.cli.screen import JsonFlag, Screen
from topics.cli.sqlresults import Format, show_results
from topics.cli.sqlshell import Shell, edit_lines
from topics.cli.streams import naming
from topics.cli.target import DEFAULT_TARGET, Target
from topics.errors import InvalidRequest, NotFound
from topics.jsontext import NOT_UNDERSTOOD
from topics.sqlmodel import SqlResult
from topics.storage.fs import RealFs


def sql(
    *params: Annotated[
        str,
        Parameter(
            help="Statements, unless -c or -f has them; then values of the parameters `?` or `$1`, `$2`, …: JSON, "
            "or else text."
        ),
    ],
    command: Annotated[str | None, Parameter(name=["--command", "-c"], help="Statements to run.")] = None,
    file: Annotated[
        str | None,
        Parameter(name=["--file", "-f"], help="A file of statements to run; `-` is stdin.", allow_leading_hyphen=True),
    ] = None,
    csv: Annotated[bool, Parameter(help="Rows as CSV, with a line of names first.", negative=())] = False,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Run SQL statements, or open a shell for them.

    Statements are the first argument, or come from `-c`, from a file, or from what is piped in. A terminal without any
    of them gets a shell with a history and completion; `\\?` says what else it knows. Results are tables on a terminal
    and JSON lines in a pipe; what is said beside them goes to stderr. docs/SQL.md has all statements. For example:

        topics sql "SELECT data->>'sku' AS sku, count(*) FROM orders GROUP BY 1"
        topics sql "SHOW TOPICS" --csv
        topics sql "INSERT INTO TOPIC orders VALUES (?)" '{"sku": "A1"}'
    """
    screen = Screen(json)
    format: Format = "csv" if csv else "json" if screen.as_json else "table"
    if csv and json:
        raise InvalidRequest("--csv and --json both say how rows are printed: give one of them", field="csv")
    given = list(params)
    if command is None and file is None and given:
        command = given.pop(0)
    text = _statements(command, file)
    if text is None:
        _shell(target, screen, format)
        return
    values = [_value(each) for each in given]
    results: list[SqlResult] = target.run(lambda client: client.sql(text, values))
    show_results(screen, results, format)


def _statements(command: str | None, file: str | None) -> str | None:
    """The statements that are there already; None when a person is to type them."""
    if command is not None and file is not None:
        raise InvalidRequest("-c and -f both have statements: give one of them", field="file")
    if command is not None:
        return command
    if file is not None and file != "-":
        return _decoded(_read(file), file)
    return None if file is None and sys.stdin.isatty() else _decoded(_piped(), "stdin")


def _read(path: str) -> bytes:
    try:
        file = RealFs().open(path, "read")
        try:
            return bytes(file.read_at(0, file.size()))
        finally:
            file.close()
    except OSError as error:
        kind = NotFound if isinstance(error, FileNotFoundError) else InvalidRequest
        raise kind(f"{path}: {error.strerror}; expected a file of statements", file=path) from None


def _piped() -> bytes:
    with naming("stdin"):
        return sys.stdin.buffer.read()


def _decoded(text: bytes, where: str) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        message = f"{where} is not UTF-8: {error.reason} at byte {error.start + 1}; expected statements in UTF-8"
        raise InvalidRequest(message, expected="UTF-8") from None


def _value(given: str) -> Any:
    """A parameter as JSON; what is no JSON is a text."""
    try:
        return msgspec.json.decode(given)
    except NOT_UNDERSTOOD:
        return given


def _shell(target: Target, screen: Screen, format: Format) -> None:
    with target.blocking() as client:
        save = edit_lines(client.sql)
        try:
            Shell(client.sql, screen, format).loop()
        finally:
            save()
