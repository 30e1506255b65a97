"""The shapes of routers for the OpenAPI document."""

from __future__ import annotations

from topics.core.names import ROUTER_RULE
from topics.routermodel import Guarantee, RouterConfig
from topics.server.schemas import MATCH
from topics.server.shapes import COUNT, FLAG, NAME, STAMP, TEXT, U64, Schema, answer_shape, object_shape, question_shape

_NAME: Schema = {"type": "string", "pattern": ROUTER_RULE}
_DEFAULTS = RouterConfig(source="", dest="")

ROUTER: Schema = {
    "name": "router",
    "in": "path",
    "required": True,
    "description": "The name of the router; by convention `<source>-><dest>`, with `>` escaped as `%3E`.",
    "schema": _NAME,
}

_TOPICS: dict[str, Schema] = {
    "source": NAME | {"description": "Records of this topic are copied."},
    "dest": NAME | {"description": "Where to; another topic than the source. It has no other source."},
}
_OPTIONS: dict[str, Schema] = {
    "preserve_node": FLAG
    | {"description": "Copies keep their `$node`, so that no reader is told of what it wrote itself."},
    "preserve_tag": FLAG | {"description": "Copies keep their `$tag`."},
    "filter": {
        "oneOf": [*MATCH["oneOf"], {"type": "null"}],
        "description": "Only records whose tag matches, in the words of `match`; null is all.",
    },
    "allow_cycle": FLAG
    | {"description": "Let records come back to where they came from; each goes around a bounded number of times."},
    "guarantee": {
        "type": "string",
        "enum": [each.value for each in Guarantee],
        "description": "`exactly_once` stamps each copy with what it is a copy of, in `meta._topics_router`, and "
        "passes over what the destination has already.",
    },
    "create_dest": FLAG | {"description": "Make the destination if it is missing."},
    "backfill": FLAG | {"description": "Begin a new router with the oldest record that is there, not with the next."},
}
_ASKED = {name: schema | {"default": getattr(_DEFAULTS, name)} for name, schema in _OPTIONS.items()}
_FORWARDED = COUNT | {"description": "Records forwarded, ever."}
_LAG_RECORDS = COUNT | {"description": "Seqs of the source that it has not come to yet."}
_LAG_MS = COUNT | {"description": "How long the oldest of them has been waiting."}
_STALLED: Schema = {
    "type": ["string", "null"],
    "description": "Why it does not go on just now; it tries again by itself. Null while it does.",
}
_PROGRESS: dict[str, Schema] = {
    "created_ts": {"type": "integer"},
    "cursors": {
        "type": "array",
        "items": U64,
        "description": "For each partition of the source, the last seq that was forwarded or passed over.",
    },
    "lag_records": _LAG_RECORDS,
    "lag_ms": _LAG_MS,
    "forwarded_total": _FORWARDED,
    "trimmed_total": COUNT
    | {"description": "Records that the source lost before they could be forwarded; readers are told of a gap."},
    "stalled": _STALLED,
    "last_error": {"type": ["string", "null"], "description": "Why it last did not go on, even if it does by now."},
    "last_error_ts": STAMP,
}
_SUMMARY: dict[str, Schema] = {
    "router": _NAME,
    **_TOPICS,
    "guarantee": _OPTIONS["guarantee"],
    "forwarded_total": _FORWARDED,
    "lag_records": _LAG_RECORDS,
    "lag_ms": _LAG_MS,
    "stalled": _STALLED,
}
_WHOLE: dict[str, Schema] = {"router": _NAME, **_TOPICS, **_OPTIONS, **_PROGRESS}

COMPONENTS: dict[str, Schema] = {
    "RouterConfig": question_shape(
        _TOPICS | _ASKED, "All but the topics may be left out; unknown fields are ignored.", "source dest"
    ),
    "RouterPut": answer_shape({"created": FLAG} | _WHOLE),
    "RouterState": answer_shape(_WHOLE),
    "RouterSummary": object_shape(
        " ".join(_SUMMARY), _SUMMARY | {name: schema for name, schema in _WHOLE.items() if name not in _SUMMARY}
    ),
    "RouterList": answer_shape(
        {"routers": {"type": "array", "items": {"$ref": "#/components/schemas/RouterSummary"}}},
        {"next_cursor": TEXT | {"description": "There while there are more."}},
    ),
    "RouterDropped": answer_shape({"router": _NAME, "deleted": FLAG}),
}
