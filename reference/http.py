"""docs/HTTP.md: the OpenAPI document for people. The same table of routes serves the requests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from reference import failures
from reference.markdown import table
from topics.server.openapi import document
from topics.server.table import ROUTES

_INTRODUCTION = """\
# HTTP

Generated from the table of routes by `make docs`; do not edit. A server shows the same at `/v0/docs`, and as an OpenAPI
3.1 document at `/v0/openapi.json`.

- **Bodies** are JSON in UTF-8, with `Content-Type: application/json`. They may be gzip (`Content-Encoding`), and so
  are larger answers for who asks (`Accept-Encoding`). Fields that are not known are ignored, so that old and new
  versions can talk.
- **Arrow**: records can be read, written and staged as Arrow streams (`application/vnd.apache.arrow.stream`), by
  `Accept` and `Content-Type`; see [Data frames](guides/dataframes.md).
- **Keys** travel as `Authorization: Bearer KEY`. An event stream also takes a stream token as `?token=…`.
- **Every answer** has an `X-Request-Id`, under which the server's log has the request; JSON answers tell in
  `performance` what was measured.
- **Errors** are `{"error": {"code", "message", "detail"}}`. Branch on `code`; `message` is for people; `detail` names
  the field and what would be right. When coming back later helps, `Retry-After` says when.
- The messages of the WebSocket are explained in [Agent streams to a browser](guides/browser.md).
"""


def as_markdown() -> str:
    """The text of docs/HTTP.md."""
    made = document(ROUTES)
    operations = [(path, method, about) for path, methods in made["paths"].items() for method, about in methods.items()]
    text = _INTRODUCTION + _contents(operations)
    for tag in made["tags"]:
        text += f"## {tag['name'].capitalize()}\n\n{tag['description']}\n\n"
        text += "".join(_operation(*each) for each in operations if tag["name"] in each[2]["tags"])
    text += "## Errors\n\n" + _statuses(operations) + failures.as_table()
    text += "## Shapes\n\n"
    text += "".join(_shape(name, schema) for name, schema in made["components"]["schemas"].items())
    return text.rstrip() + "\n"


def _contents(operations: list[tuple[str, str, dict[str, Any]]]) -> str:
    rows = [(f"`{method.upper()}`", f"`{path}`", about["summary"]) for path, method, about in operations]
    return "\n" + table(("method", "path", "what it does"), rows)


def _operation(path: str, method: str, about: dict[str, Any]) -> str:
    text = f"### {about['summary']}\n\n`{method.upper()} {path}`\n\n{about['description']}\n\n"
    rows = [
        (f"`{each['name']}`", each["in"], _type(each["schema"]), _about(each | each["schema"]))
        for each in about.get("parameters", ())
    ]
    text += table(("parameter", "in", "type", "what it is"), rows)
    if "requestBody" in about:
        optional = "" if about["requestBody"].get("required") else ", may be left out"
        text += f"Body: {_shapes(about['requestBody'])}{optional}.\n\n"
    answers = [
        (status, _shapes(response), response["description"])
        for status, response in about["responses"].items()
        if status < "400"
    ]
    return text + table(("answer", "shape", "meaning"), answers)


def _statuses(operations: list[tuple[str, str, dict[str, Any]]]) -> str:
    rows = {
        (status, response["description"])
        for _, _, about in operations
        for status, response in about["responses"].items()
        if status >= "400"
    }
    return table(("status", "meaning"), sorted(rows))


def _shape(name: str, schema: dict[str, Any]) -> str:
    text = f"### {name}\n\n"
    if schema.get("description"):
        text += f"{schema['description']}\n\n"
    required = set(schema.get("required", ()))
    rows = [
        (f"`{field}`", _type(about), "always" if field in required else "", _about(about))
        for field, about in schema["properties"].items()
    ]
    return text + table(("field", "type", "there", "what it is"), rows)


def _about(schema: dict[str, Any]) -> str:
    words = [schema["description"]] if schema.get("description") else []
    if "default" in schema:
        words.append(f"Default: `{json.dumps(schema['default'])}`.")
    if "minimum" in schema and schema["minimum"] > 0:
        words.append(f"At least {schema['minimum']}.")
    if "maximum" in schema and schema["maximum"] < 1 << 53:
        words.append(f"At most {schema['maximum']}.")
    return " ".join(words)


def _type(schema: dict[str, Any]) -> str:
    """A schema in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "oneOf" in schema:
        return _either(_type(each) for each in schema["oneOf"])
    if "enum" in schema:
        return " or ".join("null" if value is None else f"`{value}`" for value in schema["enum"])
    kinds = schema.get("type", "any JSON")
    if isinstance(kinds, list):
        return _either(_type(schema | {"type": kind}) for kind in kinds)
    if kinds == "array":
        return f"array of {_type(schema['items'])}"
    if kinds == "object" and "properties" in schema:
        return "{" + ", ".join(schema["properties"]) + "}"
    if kinds == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    return str(kinds)


def _either(types: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(each for named in types for each in named.split(" or ")))


def _shapes(holder: dict[str, Any]) -> str:
    return ", ".join(
        _type(content["schema"]) if "$ref" in content["schema"] else f"`{media}`"
        for media, content in holder.get("content", {}).items()
    )
