"""The shapes of the audit log for the OpenAPI document."""

from __future__ import annotations

from topics.server.shapes import COUNT, FLAG, TEXT, Schema, answer_shape, object_shape, ref

COMPONENTS: dict[str, Schema] = {
    "AuditEntry": object_shape(
        "*",
        {
            "seq": COUNT | {"description": "Its place in the chain."},
            "at": {"type": "integer", "description": "Milliseconds since the epoch."},
            "action": TEXT | {"description": "What was done: `sign_in`, `create_key`, `DELETE /v0/topics/{topic}`, …"},
            "name": TEXT | {"description": "To what."},
            "key": TEXT | {"description": "With which key or by which user, never the secret."},
            "who": TEXT | {"description": "What people call that key or user."},
            "over": TEXT | {"description": "`http` or `grpc`."},
            "outcome": TEXT | {"description": "`begun`, `done`, or the code of the error that ended it."},
            "request_id": TEXT,
            "address": TEXT | {"description": "Where it came from."},
            "detail": {"type": "object"},
            "previous": TEXT | {"description": "The hash of the line before."},
            "hash": TEXT | {"description": "SHA-256 of the line up to here."},
        },
    ),
    "AuditPage": answer_shape(
        {"entries": {"type": "array", "items": ref("AuditEntry")}},
        {"next_cursor": TEXT | {"description": "There while there is more to look at."}},
    ),
    "AuditVerdict": answer_shape(
        {
            "intact": FLAG,
            "line_count": COUNT,
            "first_seq": COUNT,
            "last_seq": COUNT,
            "last_hash": TEXT | {"description": "Note it elsewhere: a chain that still has it was not rewritten."},
        },
        {"problem": TEXT | {"description": "Where the chain does not hold, and why."}},
    ),
}
