"""What the server looks like from outside: time series, an overview with alerts, and the settings in effect."""

from __future__ import annotations

from heapq import nlargest

import msgspec

from topics.errors import InvalidRequest
from topics.limits import U64_MAX
from topics.secret import HIDDEN
from topics.server.answers import private, success
from topics.server.context import Context
from topics.server.message import Reply, Request
from topics.server.observing import Observer
from topics.server.principal import Scope
from topics.server.route import Operation, Route
from topics.server.routes.keys import check_unlimited
from topics.server.series import SERIES, STEPS
from topics.server.shapes import TEXT, answer, parameter
from topics.settings import TABLE, Unit, show
from topics.wire.query import Query

TOP_TOPICS = 20
_STEPS = [step.name for step in STEPS]


def series(context: Context, request: Request, reply: Reply) -> None:
    query, observer = Query(request.query), _observer(context)
    step = query.one_of("step", _STEPS, _STEPS[0])
    ring = observer.series.rings[step]
    wanted = query.text("names")
    names = [name.strip() for name in wanted.split(",")] if wanted else list(SERIES)
    unknown = [name for name in names if name not in SERIES]
    if unknown:
        expected = f"names out of {', '.join(SERIES)}"
        raise InvalidRequest(f"names has one that is no series; expected {expected}", field="names", expected=expected)
    times, values = ring.since(query.whole("since", 0, U64_MAX), names)
    fields = {
        "step": step,
        "step_ms": ring.step.step_s * 1000,
        "times": times,
        "series": {
            name: {"unit": SERIES[name].unit.value, "about": SERIES[name].doc, "values": values[name]} for name in names
        },
    }
    reply(success(context, request, fields))


def overview(context: Context, request: Request, reply: Reply) -> None:
    observer, principal, engine = _observer(context), request.principal, context.ready().engine
    rates = [(rate, topic) for topic, rate in observer.sampler.rates.items() if principal.may_touch(topic)]
    storage = observer.storage
    shards = [engine.wal.metrics(number) for number in range(engine.wal.shards)]
    fields = {
        "uptime_ms": max(0, context.clock.now_ms() - context.started_ms),
        "now": {name: round(value, 3) for name, value in observer.series.latest.items()},
        "top_topics": [
            {"topic": topic, "records_per_s": round(rate, 2)} for rate, topic in nlargest(TOP_TOPICS, rates)
        ],
        "storage": {
            "memory_bytes": engine.machine.totals.bytes,
            "wal_bytes": storage.wal_bytes,
            "hot_bytes": storage.hot_bytes,
            "cold_bytes": storage.cold_bytes,
            "free_bytes": storage.free_bytes,
        },
        "logs": [
            {
                "shard": number,
                "healthy": not each.read_only,
                "error": each.last_error,
                "queue_depth": each.queue_depth,
                "queue_bytes": each.queue_bytes,
            }
            for number, each in enumerate(shards)
        ],
        "alerts": [
            msgspec.to_builtins(alert)
            for alert in observer.alerts.current.values()
            if not alert.topic or principal.may_touch(alert.topic)
        ],
        "events": [
            msgspec.to_builtins(event)
            for event in reversed(observer.alerts.events)
            if not event.topic or principal.may_touch(event.topic)
        ],
    }
    reply(success(context, request, fields))


def settings(context: Context, request: Request, reply: Reply) -> None:
    check_unlimited(request.principal)
    chosen, origins = context.settings, context.origins
    shown = []
    for setting in TABLE:
        value = getattr(chosen, setting.key)
        secret = setting.about.unit is Unit.SECRET
        shown.append(
            {
                "setting": setting.key,
                "variable": setting.variable,
                "value": (HIDDEN if value is not None else None) if secret else value,
                "text": (HIDDEN if value is not None else "none") if secret else show(value, setting.about.unit),
                "default": show(setting.default, setting.about.unit),
                "origin": origins.get(setting.key, "default"),
                "unit": setting.about.unit.value,
                "about": setting.about.doc,
            }
        )
    reply(private(context, request, {"settings": shown}))


def _observer(context: Context) -> Observer:
    context.ready()
    assert context.observer is not None, "there is an engine, so it is observed"
    return context.observer


ROUTES = (
    Route(
        "GET",
        "/v0/series",
        Scope.READ,
        series,
        Operation(
            "Time series",
            "Rates, latencies, connections and storage: the last ten minutes by seconds, two hours by ten seconds, a "
            "day by minutes. They begin with the process. Ask again with `since` for what is new.",
            "operations",
            parameters=(
                parameter("step", {"type": "string", "enum": [*_STEPS, ""], "default": _STEPS[0]}, "How fine."),
                parameter("since", {"type": "integer", "minimum": 0}, "Only behind this time, ms since 1970."),
                parameter("names", TEXT, "Only these series, separated by commas."),
            ),
            responses={"200": answer("SeriesAnswer", "Times, and the values of each series at them.")},
        ),
    ),
    Route(
        "GET",
        "/v0/overview",
        Scope.READ,
        overview,
        Operation(
            "Overview",
            "How things are: the last sample, the busiest topics, storage by tier, the health of each write-ahead "
            "log, alerts with what to do, and the last events. Of topics only those that the key may touch.",
            "operations",
            responses={"200": answer("Overview", "How things are.")},
        ),
    ),
    Route(
        "GET",
        "/v0/settings",
        Scope.ADMIN,
        settings,
        Operation(
            "Settings in effect",
            "Every setting with its value and where that came from: a flag, a variable, a file or the default. Of a "
            "secret only whether it is set.",
            "operations",
            responses={"200": answer("SettingsAnswer", "All settings.")},
        ),
    ),
)
