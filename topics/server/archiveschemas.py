"""The shapes of archives for the OpenAPI document: what is reported of one, and what retention leaves for them."""

from __future__ import annotations

from topics import limits
from topics.server.shapes import COUNT, FLAG, NAME, PARTITION_NUMBER, TEXT, U64, Schema, answer_shape, object_shape

_PROGRESS: dict[str, Schema] = {
    "archive": NAME,
    "upto_seq": U64 | {"description": "The archive has every record up to this seq."},
    "behind": COUNT | {"description": "Seqs that it has yet to take."},
    "location": TEXT | {"description": "Where it is, as it was reported."},
    "reported_ts": {"type": "integer"},
}
_SEVERAL: dict[str, Schema] = {"partition": PARTITION_NUMBER}

COMPONENTS: dict[str, Schema] = {
    "ArchiveReport": object_shape(
        "upto_seq",
        {
            "upto_seq": U64 | {"description": "The archive has every record up to this seq; 0 for none yet."},
            "location": {
                "type": ["string", "null"],
                "maxLength": limits.ARCHIVE_LOCATION_BYTES_MAX,
                "description": "Where it is, for people and programs that look for history.",
            },
            "partition": {"type": ["integer", "null"], "minimum": 0, "maximum": limits.PARTITIONS_MAX - 1},
            "epoch": {
                "type": ["integer", "null"],
                "minimum": 0,
                "description": "That of the topic that was archived: a report of an earlier life is refused.",
            },
        },
    ),
    "ArchiveProgress": object_shape(" ".join(_PROGRESS), _PROGRESS | _SEVERAL),
    "ArchiveReported": answer_shape({"topic": NAME} | _PROGRESS, _SEVERAL),
    "ArchiveList": answer_shape(
        {"topic": NAME, "archives": {"type": "array", "items": {"$ref": "#/components/schemas/ArchiveProgress"}}}
    ),
    "ArchiveDropped": answer_shape({"topic": NAME, "archive": NAME, "dropped": FLAG}),
    "Holding": object_shape(
        "*",
        {
            "needed_from": U64 | {"description": "The first seq that an archive or a group has not got."},
            "max_bytes": U64 | {"description": "What the partition holds at most while retention waits."},
            "overrun_count": COUNT
            | {"description": "Records that went although they were needed, since the server started."},
        },
    ),
}
