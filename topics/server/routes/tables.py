"""Registered tables: put, look at, list and delete them. See docs/PIPELINES.md."""

from __future__ import annotations

from topics.core.catalogview import routes_by_table, table_state
from topics.core.names import check_table
from topics.core.pipelinecommands import DropTable, PutTable
from topics.engine.ticket import Ticket
from topics.limits import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, U64_MAX
from topics.server.answers import success, when_done
from topics.server.auth import check_place
from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.server.pipelineschemas import TABLE
from topics.server.principal import Scope
from topics.server.route import Operation, Route
from topics.server.shapes import answer, body, flag_parameter, parameter
from topics.tablemodel import TableDropped, TableState
from topics.wire.cursor import decode_cursor, encode_cursor
from topics.wire.query import Query
from topics.wire.table import decode_table, table_fields, table_summary


def put(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    check_place(request.principal, "location")
    command = PutTable(check_table(request.params["table"]), decode_table(request.body))

    def make(ticket: Ticket) -> Response:
        state = ticket.result()
        assert isinstance(state, TableState)
        fields = {"created": state.created} | table_fields(state)
        return success(context, request, fields, 201 if state.created else 200)

    when_done(context, request, reply, host.decide(command), make)


def look(context: Context, request: Request, reply: Reply) -> None:
    state = table_state(context.ready().engine.machine, request.params["table"])
    reply(success(context, request, table_fields(state)))


def drop(context: Context, request: Request, reply: Reply) -> None:
    command = DropTable(check_table(request.params["table"]))

    def make(ticket: Ticket) -> Response:
        dropped = ticket.result()
        assert isinstance(dropped, TableDropped)
        return success(context, request, {"table": dropped.table, "deleted": dropped.deleted})

    when_done(context, request, reply, context.ready().decide(command), make)


def list_tables(context: Context, request: Request, reply: Reply) -> None:
    query = Query(request.query)
    page_size = min(query.whole("page_size", 0, U64_MAX) or PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)
    after, prefix = decode_cursor(query.text("cursor")), query.text("prefix")
    shown = table_fields if query.flag("full", False) else table_summary
    machine = context.ready().engine.machine
    names = sorted(
        name
        for name in machine.catalog.tables
        if name > after and name.startswith(prefix) and request.principal.may_touch(name)
    )
    routes = routes_by_table(machine)
    found = [table_state(machine, name, routes=routes) for name in names[:page_size]]
    fields: dict[str, object] = {"tables": list(map(shown, found))}
    if len(names) > page_size:
        fields["next_cursor"] = encode_cursor(names[page_size - 1])
    reply(success(context, request, fields))


ROUTES = (
    Route(
        "GET",
        "/v0/tables",
        Scope.READ,
        list_tables,
        Operation(
            "List tables",
            "Registered tables in order of their names, a page at a time; only those that the key may touch. "
            "`next_cursor` is there while there are more.",
            "pipelines",
            parameters=(
                parameter("prefix", {"type": "string"}, "Only names that begin with this."),
                parameter(
                    "page_size",
                    {"type": "integer", "minimum": 0, "default": PAGE_SIZE_DEFAULT},
                    f"Tables in a page; more than {PAGE_SIZE_MAX} is {PAGE_SIZE_MAX}.",
                ),
                parameter("cursor", {"type": "string"}, "`next_cursor` of the page before."),
                flag_parameter("full", False, "Whether to show of each table all that looking at it shows."),
            ),
            responses={"200": answer("TableList", "A page of tables.")},
        ),
    ),
    Route(
        "PUT",
        "/v0/tables/{table}",
        Scope.ADMIN,
        put,
        Operation(
            "Register a table",
            "Gives a table a name that routes and pipelines know it by; one that exists is registered like this from "
            "now on. Nothing looks at the table itself, whose columns come with the request. A location with a "
            "password in it is refused: name an environment variable of the runner in `location_env`.",
            "pipelines",
            parameters=(TABLE,),
            request_body=body("TableConfig"),
            responses={
                "200": answer("TablePut", "The table was registered; this is how it is now."),
                "201": answer("TablePut", "The table is registered."),
            },
        ),
        name_param="table",
    ),
    Route(
        "GET",
        "/v0/tables/{table}",
        Scope.READ,
        look,
        Operation(
            "Look at a table",
            "How it is registered, and its routes. 404 `table_not_found` when it is not.",
            "pipelines",
            parameters=(TABLE,),
            responses={"200": answer("TableState", "The table as it is registered.")},
        ),
        name_param="table",
    ),
    Route(
        "DELETE",
        "/v0/tables/{table}",
        Scope.ADMIN,
        drop,
        Operation(
            "Unregister a table",
            "Forgets the name; the table itself is not touched. 409 `table_in_use`, with `topics` and `pipelines` in "
            "`detail`, while it is read. One that is not there answers `deleted: false`.",
            "pipelines",
            parameters=(TABLE,),
            responses={"200": answer("TableDropped", "Whether it was there.")},
        ),
        name_param="table",
    ),
)
