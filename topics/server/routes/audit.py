"""The audit log: search it, and see whether anybody changed it. See docs/ACCOUNTS.md."""

from __future__ import annotations

from topics.limits import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, U64_MAX
from topics.server.answers import later, private
from topics.server.auditfile import AuditFile
from topics.server.auditreading import Search, search, verify
from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.server.principal import Scope
from topics.server.route import Operation, Route
from topics.server.routes.keys import check_unlimited
from topics.server.shapes import TEXT, answer, parameter
from topics.wire.query import Query


def look(context: Context, request: Request, reply: Reply) -> None:
    check_unlimited(request.principal)
    query, host = Query(request.query), context.ready()
    audit = context.audit
    assert audit is not None, "there is an engine, so there is an audit log"
    wanted = Search(
        query.text("action"),
        query.text("name"),
        query.text("who"),
        query.text("outcome"),
        query.text("text"),
        query.whole("from_ts", 0, U64_MAX) or 0,
        query.whole("to_ts", 0, U64_MAX) or 0,
    )
    page_size = min(query.whole("page_size", 0, U64_MAX) or PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)
    before_seq = query.whole("cursor", 0, U64_MAX) or 0

    async def work() -> Response:
        await audit.settle()
        found = await search(host.engine, wanted, page_size, before_seq)
        fields: dict[str, object] = {"entries": found.entries}
        if found.before_seq:
            fields["next_cursor"] = str(found.before_seq)
        return private(context, request, fields)

    later(context, request, reply, work())


def check(context: Context, request: Request, reply: Reply) -> None:
    check_unlimited(request.principal)
    host = context.ready()
    store = host.engine.store

    async def work() -> Response:
        verdict = await verify(host.engine, AuditFile(store.fs, store.directory))
        fields: dict[str, object] = {
            "intact": not verdict.problem,
            "line_count": verdict.line_count,
            "first_seq": verdict.first_seq,
            "last_seq": 0 if verdict.last is None else verdict.last.seq,
            "last_hash": "" if verdict.last is None else verdict.last.hash,
        }
        if verdict.problem:
            fields["problem"] = verdict.problem
        return private(context, request, fields)

    later(context, request, reply, work())


ROUTES = (
    Route(
        "GET",
        "/v1/audit",
        Scope.ADMIN,
        look,
        Operation(
            "Search the audit log",
            "Lines that fit all that is asked for, the newest first. A search that looks at very many lines answers a "
            "page with few or no entries and a `next_cursor`.",
            "accounts",
            parameters=(
                parameter("action", TEXT, "Part of the action."),
                parameter("name", TEXT, "What it was done to, whole."),
                parameter("who", TEXT, "The e-mail of a user, or the name or id of a key."),
                parameter("outcome", TEXT, "`begun`, `done` or the code of an error."),
                parameter("text", TEXT, "Anywhere in the line, in any case."),
                parameter("from_ts", {"type": "integer", "minimum": 0}, "Not before this time, ms since 1970."),
                parameter("to_ts", {"type": "integer", "minimum": 0}, "Before this time."),
                parameter(
                    "page_size",
                    {"type": "integer", "minimum": 0, "default": PAGE_SIZE_DEFAULT},
                    f"Entries in a page; more than {PAGE_SIZE_MAX} is {PAGE_SIZE_MAX}.",
                ),
                parameter("cursor", {"type": "integer", "minimum": 0}, "`next_cursor` of the page before."),
            ),
            responses={"200": answer("AuditPage", "A page of entries.")},
        ),
    ),
    Route(
        "GET",
        "/v1/audit/verify",
        Scope.ADMIN,
        check,
        Operation(
            "Verify the audit log",
            "Follows the chain of hashes through all files, and compares them with the copy in the log.",
            "accounts",
            responses={"200": answer("AuditVerdict", "Whether it holds.")},
        ),
    ),
)
