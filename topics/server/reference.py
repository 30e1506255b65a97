"""The API reference page: the OpenAPI document as HTML. One file, nothing fetched from elsewhere."""

from __future__ import annotations

import re
from html import escape
from typing import Any

import msgspec

_CODE = re.compile(r"`([^`]+)`")

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --accent: #2563eb; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; padding: 2rem 1rem 4rem; max-width: 56rem; }
h1, h2, h3 { line-height: 1.2; }
h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); padding-bottom: .3rem; }
nav ul { columns: 2; list-style: none; padding: 0; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
section.operation { border: 1px solid var(--line); border-radius: .5rem; margin: 1rem 0; padding: 0 1rem 1rem; }
code, pre { font: .875rem/1.45 ui-monospace, monospace; }
code { background: var(--soft); border-radius: .25rem; padding: .1rem .25rem; }
pre { background: var(--soft); border-radius: .5rem; overflow-x: auto; padding: .75rem; }
pre code { background: none; padding: 0; }
.method { color: var(--accent); font-weight: 700; }
table { border-collapse: collapse; width: 100%; }
td, th { border-top: 1px solid var(--line); padding: .35rem .5rem; text-align: left; vertical-align: top; }
@media (max-width: 40rem) { nav ul { columns: 1; } }
"""


def page(document: dict[str, Any]) -> bytes:
    operations = [
        (method, path, about) for path, methods in document["paths"].items() for method, about in methods.items()
    ]
    parts = [_head(document["info"]), _contents(operations)]
    for tag in document["tags"]:
        parts.append(f"<h2>{escape(tag['name'].capitalize())}</h2>\n<p>{_words(tag['description'])}</p>")
        parts += [_operation(*each) for each in operations if tag["name"] in each[2]["tags"]]
    parts.append("<h2>Shapes</h2>")
    parts += [_shape(name, schema) for name, schema in document["components"]["schemas"].items()]
    parts.append("</main></body></html>\n")
    return "\n".join(parts).encode()


def _head(info: dict[str, Any]) -> str:
    title = f"{escape(info['title'])} {escape(info['version'])}"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}: API</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body><main><h1>{title}</h1><p>{_words(info['description'])} "
        'For programs: <a href="/v0/openapi.json">openapi.json</a>.</p>'
    )


def _contents(operations: list[tuple[str, str, dict[str, Any]]]) -> str:
    items = [
        f'<li><a href="#{about["operationId"]}"><span class="method">{method.upper()}</span> {escape(path)}</a></li>'
        for method, path, about in operations
    ]
    return f'<nav aria-label="Operations"><ul>{"".join(items)}</ul></nav>'


def _operation(method: str, path: str, about: dict[str, Any]) -> str:
    rows = [
        f"<tr><td><code>{escape(each['name'])}</code></td><td>{escape(each['in'])}</td>"
        f"<td>{_words(each.get('description', ''))}</td></tr>"
        for each in about.get("parameters", ())
    ]
    answers = [
        f"<tr><td>{escape(status)}</td><td>{_shape_links(response)}</td><td>{_words(response['description'])}</td></tr>"
        for status, response in about["responses"].items()
    ]
    body = f"<p>Body: {_shape_links(about['requestBody'])}</p>" if "requestBody" in about else ""
    parameters = f"<table>{''.join(rows)}</table>" if rows else ""
    return (
        f'<section class="operation" id="{about["operationId"]}">'
        f'<h3><span class="method">{method.upper()}</span> <code>{escape(path)}</code></h3>'
        f"<p><strong>{escape(about['summary'])}.</strong> {_words(about['description'])}</p>"
        f"{parameters}{body}<details><summary>Answers</summary><table>{''.join(answers)}</table></details></section>"
    )


def _shape(name: str, schema: dict[str, Any]) -> str:
    text = msgspec.json.format(msgspec.json.encode(schema), indent=2).decode()
    return f'<section id="shape-{name}"><h3>{name}</h3><pre><code>{escape(text)}</code></pre></section>'


def _shape_links(holder: dict[str, Any]) -> str:
    names = [
        str(content["schema"]["$ref"]).rsplit("/", 1)[1]
        for content in holder.get("content", {}).values()
        if "$ref" in content["schema"]
    ]
    return ", ".join(f'<a href="#shape-{name}">{name}</a>' for name in names)


def _words(text: str) -> str:
    """Text with `code` in it."""
    return _CODE.sub(r"<code>\1</code>", escape(text))
