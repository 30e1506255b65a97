"""`GET /v0/metrics`: for Prometheus, or as JSON for whoever asks for it."""

from __future__ import annotations

from topics.server.answers import success
from topics.server.context import Context
from topics.server.exposition import TEXT, as_fields, as_text, prefers_json
from topics.server.message import Reply, Request, Response
from topics.server.metrics import collect
from topics.server.principal import Scope
from topics.server.route import Operation, Route


def scrape(context: Context, request: Request, reply: Reply) -> None:
    """Answers while the directory is being recovered, too."""
    families = collect(context, request.principal)
    if prefers_json(request.headers.get("accept", "")):
        reply(success(context, request, as_fields(families)))
    else:
        reply(Response(200, as_text(families), TEXT))


ROUTES = (
    Route(
        "GET",
        "/v0/metrics",
        Scope.READ,
        scrape,
        Operation(
            "Metrics",
            "Gauges, counters and latency histograms as Prometheus text 0.0.4, or as a JSON object with the same names "
            "when `Accept` prefers `application/json`. Answers 200 during recovery, too. The families by topic are "
            "bounded; `topics_topic_metrics_truncated` is 1 when some topics are left out.",
            "operations",
            responses={
                "200": {
                    "description": "The metrics.",
                    "content": {
                        "text/plain": {"schema": {"type": "string"}},
                        "application/json": {"schema": {"type": "object", "additionalProperties": True}},
                    },
                }
            },
        ),
    ),
)
