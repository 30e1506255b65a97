"""What the shapes of the OpenAPI document are made of, and short ways to refer to them."""

from __future__ import annotations

from typing import Any

from topics import limits
from topics.core.names import TOPIC_RULE

Schema = dict[str, Any]

U64: Schema = {"type": "integer", "minimum": 0, "maximum": limits.U64_MAX}
COUNT: Schema = {"type": "integer", "minimum": 0}
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
NAME: Schema = {"type": "string", "pattern": TOPIC_RULE}
STAMP: Schema = {"type": ["integer", "null"], "description": "Milliseconds since the epoch; null for never."}
PARTITION_NUMBER: Schema = {"type": "integer", "minimum": 0, "maximum": limits.PARTITIONS_MAX - 1}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def body(name: str, required: bool = True) -> Schema:
    return {"required": required, "content": {"application/json": {"schema": ref(name)}}}


def answer(name: str, description: str) -> Schema:
    return {"description": description, "content": {"application/json": {"schema": ref(name)}}}


def parameter(name: str, schema: Schema, description: str) -> Schema:
    return {"name": name, "in": "query", "description": description, "schema": schema}


def flag_parameter(name: str, default: bool, description: str) -> Schema:
    return parameter(name, {"type": "boolean", "default": default}, description)


TOPIC: Schema = {
    "name": "topic",
    "in": "path",
    "required": True,
    "description": "The name of the topic.",
    "schema": NAME,
}
PARTITION = parameter("partition", PARTITION_NUMBER | {"default": 0}, "Which partition of the topic.")


def object_shape(required: str, properties: dict[str, Schema], description: str = "") -> Schema:
    """An object; `required` names keys that are always there, or `*` for all of them."""
    names = list(properties) if required == "*" else required.split()
    schema: Schema = {"type": "object", "properties": properties}
    if names:
        schema["required"] = names
    if description:
        schema["description"] = description
    return schema


def question_shape(properties: dict[str, Schema], description: str = "", required: str = "") -> Schema:
    """A request object whose fields may be left out but for `required`; null is the same as leaving one out."""
    needed = required.split()
    shaped = {name: schema if name in needed else or_null(schema) for name, schema in properties.items()}
    return object_shape(required, shaped, description)


def or_null(schema: Schema) -> Schema:
    """What allows what a schema allows, and null."""
    wider = dict(schema)
    if isinstance(schema.get("type"), str):
        wider["type"] = [schema["type"], "null"]
    if "enum" in schema and None not in schema["enum"]:
        wider["enum"] = [*schema["enum"], None]
    if "oneOf" in schema and {"type": "null"} not in schema["oneOf"]:
        wider["oneOf"] = [*schema["oneOf"], {"type": "null"}]
    return wider


def answer_shape(properties: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    always = properties | {"performance": ref("Performance")}
    return object_shape(" ".join(always), always | (optional or {}))
