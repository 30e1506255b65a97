"""The names that a shell completes: topics, queues and routers of the server that a command line is about.

Asked while somebody waits for the key they pressed: a server has little time to answer, and whatever goes wrong
completes nothing and says nothing. A directory is not opened for it, because that would lock it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from topics.errors import TopicsError

if TYPE_CHECKING:
    from cyclopts.completion import CompletionContext

TIMEOUT_S = 0.5
NAMES_MAX = 1000


def topic_names(context: CompletionContext) -> list[str]:
    """Topics whose names begin like the word that is being typed."""
    return [found["topic"] for found in _listed(context, "topics")]


def queue_names(context: CompletionContext) -> list[str]:
    """The same, queues only."""
    return [found["topic"] for found in _listed(context, "topics") if found.get("type") == "queue"]


def heap_names(context: CompletionContext) -> list[str]:
    """The same, heaps only."""
    return [found["topic"] for found in _listed(context, "heaps", "v1")]


def router_names(context: CompletionContext) -> list[str]:
    """The same of routers."""
    return [found["router"] for found in _listed(context, "routers")]


def table_names(context: CompletionContext) -> list[str]:
    """The same of registered tables."""
    return [found["table"] for found in _listed(context, "tables")]


def pipeline_names(context: CompletionContext) -> list[str]:
    """The same of pipelines."""
    return [found["pipeline"] for found in _listed(context, "pipelines")]


def _listed(context: CompletionContext, kind: str, version: str = "v0") -> list[dict[str, Any]]:
    # Nearly every start of the command completes nothing, and need not wait for what asks.
    from topics.cli.probe import Probe
    from topics.cli.target import Target

    target = Target(url=_said(context, "--url"), dir=_said(context, "--dir"), key=_said(context, "--key"))
    query = urlencode({"prefix": context.incomplete, "page_size": NAMES_MAX})
    try:
        if target.address is None:
            return []
        probe = Probe(target.address, target.api_key, timeout_s=TIMEOUT_S)
        listed = probe.get(f"/{version}/{kind}?{query}").fields.get(kind)
    except TopicsError:
        return []
    return listed if isinstance(listed, list) else []


def _said(context: CompletionContext, flag: str) -> str | None:
    """What was typed for a flag, as far as it was."""
    given = context.get(flag)
    return None if given is None else given.raw
