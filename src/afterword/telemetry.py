"""Spans, counters and log fields: what afterword does, told by ids, names and numbers, never in words of a user.

By the API of OpenTelemetry alone: without its SDK a span costs some microseconds and leads nowhere.
docs/observability.md lists everything that is told.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache, wraps
from importlib.metadata import PackageNotFoundError, version
from inspect import iscoroutinefunction, signature
from time import perf_counter
from typing import Any, ParamSpec, TypeVar, cast

from opentelemetry import metrics, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from afterword.facts.scopes import Scope

P = ParamSpec("P")
T = TypeVar("T")
Value = str | bool | int | float
Given = Value | Scope | None

SCOPE_DIGITS = 16
ERROR = "error.type"


class Stage(StrEnum):
    """What is done inside a span of this name, and timed."""

    BATCH = "afterword.batch"
    SESSION = "afterword.session"
    READ = "afterword.read"
    EXTRACT = "afterword.extract"
    REPAIR = "afterword.repair"
    GROUND = "afterword.ground"
    JUDGE = "afterword.judge"
    PROPOSE = "afterword.propose"
    APPLY = "afterword.apply"
    UNDO = "afterword.undo"
    CONSOLIDATE = "afterword.consolidate"
    RECALL = "afterword.recall"
    SEARCH = "afterword.search"
    UPDATE_CONTEXT = "afterword.update_context"
    RECORD = "afterword.record"
    FORGET = "afterword.forget"
    EXPORT = "afterword.export"
    IMPORT = "afterword.import"
    VECTORS = "afterword.vectors"
    JOB = "afterword.job"
    RETRY = "afterword.retry"
    MIGRATE = "afterword.migrate"


class Count(StrEnum):
    """What is counted."""

    SESSIONS = "afterword.sessions"
    ASSERTIONS = "afterword.assertions"
    REFUSED = "afterword.candidates.refused"
    VERDICTS = "afterword.verdicts"
    CALLS = "afterword.calls"
    TOKENS = "afterword.tokens"
    COST = "afterword.cost"
    RECALLS = "afterword.recalls"
    CACHE = "afterword.cache.lookups"
    RETRIES = "afterword.retries"
    JOBS = "afterword.jobs"


class Measure(StrEnum):
    """What is measured, in seconds or (the third) in tokens. The last two are names of OpenTelemetry's conventions."""

    STAGE = "afterword.stage.duration"
    QUEUE_AGE = "afterword.queue.age"
    GEN_AI_TOKENS = "gen_ai.client.token.usage"
    GEN_AI_DURATION = "gen_ai.client.operation.duration"


_UNITS: Mapping[Count | Measure, str] = {
    Count.SESSIONS: "{session}",
    Count.ASSERTIONS: "{assertion}",
    Count.REFUSED: "{candidate}",
    Count.VERDICTS: "{verdict}",
    Count.CALLS: "{request}",
    Count.TOKENS: "{token}",
    Count.COST: "{USD}",
    Count.RECALLS: "{recall}",
    Count.CACHE: "{lookup}",
    Count.RETRIES: "{session}",
    Count.JOBS: "{job}",
    Measure.STAGE: "s",
    Measure.QUEUE_AGE: "s",
    Measure.GEN_AI_TOKENS: "{token}",
    Measure.GEN_AI_DURATION: "s",
}


def _version() -> str:
    try:
        return version("afterword")
    except PackageNotFoundError:
        return ""


# Proxies: an application that sets its providers later is served by them from then on.
_TRACER = trace.get_tracer("afterword", _version())
_METER = metrics.get_meter("afterword", _version())
_COUNTERS = {name: _METER.create_counter(name, _UNITS[name]) for name in Count}
_HISTOGRAMS = {name: _METER.create_histogram(name, _UNITS[name]) for name in Measure}

_NOTHING = nullcontext()
_LOGGED = frozenset({"scope", "session_id", "run_id", "job"})
_NAMES = {"model": "gen_ai.request.model", "token_type": "gen_ai.token.type"}
"""What OpenTelemetry's conventions have a name for; all else is named `afterword.`, and so by the keyword."""


@dataclass(frozen=True, slots=True)
class _Doing:
    """The stage that the running task is in: its span, and the fields of its log records."""

    span: Span
    fields: Mapping[str, Value]


_doing: ContextVar[_Doing] = ContextVar("doing", default=_Doing(trace.INVALID_SPAN, {}))  # noqa: B039 - frozen


@lru_cache(maxsize=1000)
def scope_mark(scope: Scope) -> str:
    """Return what stands for a scope in spans and logs: names of users may be addresses of people.

    A hash without a key: whoever knows a scope's name finds its traces, and whoever has a trace can check a guess.
    """
    return hashlib.sha256(str(scope).encode()).hexdigest()[:SCOPE_DIGITS]


@contextmanager
def stage(name: Stage, **attributes: Given) -> Iterator[None]:
    """Do a stage inside a span, timed. An error is told by its type alone: its text may hold what was said.

    A scope is told as its mark, None not at all. `scope`, `session_id`, `run_id` and `job` are fields of the log
    records inside as well.
    """
    begun, told = perf_counter(), {"afterword.stage": name.value}
    token = None
    try:
        with _opened(name, _named(attributes), told) as span:
            fields = {**_doing.get().fields, "stage": name.value, **_logged(attributes)}
            token = _doing.set(_Doing(span, fields))
            yield
    finally:
        if token is not None:
            _doing.reset(token)
        _HISTOGRAMS[Measure.STAGE].record(perf_counter() - begun, told)


def note(**attributes: Given) -> None:
    """Add attributes to the stage that the running task is in."""
    doing = _doing.get()
    if doing.span.is_recording():
        doing.span.set_attributes(_named(attributes))
    if logged := _logged(attributes):
        _doing.set(replace(doing, fields={**doing.fields, **logged}))


def staged(name: Stage, *told: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator that does a function, plain or async, as a stage; the parameters named are its attributes."""

    def decorator(work: Callable[P, T]) -> Callable[P, T]:
        places = {parameter: place for place, parameter in enumerate(signature(work).parameters) if parameter in told}

        def opened(*args: P.args, **kwargs: P.kwargs) -> AbstractContextManager[None]:
            attributes: dict[str, Any] = {
                parameter: args[place] if place < len(args) else kwargs.get(parameter)
                for parameter, place in places.items()
            }
            return stage(name, **attributes)

        @wraps(work)
        def inside(*args: P.args, **kwargs: P.kwargs) -> T:
            with opened(*args, **kwargs):
                return work(*args, **kwargs)

        @wraps(work)
        async def inside_async(*args: P.args, **kwargs: P.kwargs) -> Any:
            with opened(*args, **kwargs):
                return await cast(Awaitable[Any], work(*args, **kwargs))

        return cast(Callable[P, T], inside_async) if iscoroutinefunction(work) else inside

    return decorator


@contextmanager
def client_span(name: str, attributes: Mapping[str, Value]) -> Iterator[Span]:
    """Open the span of a question to a service; name and attributes are those of OpenTelemetry's conventions."""
    with _opened(name, attributes, {}, kind=SpanKind.CLIENT) as span:
        yield span


def fail(span: Span, kind: str) -> None:
    """Mark a span as failed with an error of this type."""
    span.set_attribute(ERROR, kind)
    span.set_status(Status(StatusCode.ERROR))


def count(what: Count, amount: float = 1, **attributes: Given) -> None:
    """Add to a counter; nothing where the amount is 0."""
    if amount:
        _COUNTERS[what].add(amount, _named(attributes))


def measure(what: Measure, amount: float, attributes: Mapping[str, Value] | None = None) -> None:
    """Enter a value in a histogram; the attributes are those of OpenTelemetry's conventions."""
    _HISTOGRAMS[what].record(amount, attributes)


class Logs(logging.LoggerAdapter[logging.Logger]):
    """A logger whose records carry the fields of what is being done: stage, scope, session_id, run_id, job."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Add the fields to those that the call gives."""
        return msg, {**kwargs, "extra": {**_doing.get().fields, **(kwargs.get("extra") or {})}}


def logs(name: str) -> Logs:
    """Return the logger of a module."""
    return Logs(logging.getLogger(name), {})


@contextmanager
def _opened(
    name: str, attributes: Mapping[str, Value], told: dict[str, str], *, kind: SpanKind = SpanKind.INTERNAL
) -> Iterator[Span]:
    """Open a span; an error's type is told to it, and put into `told`."""
    span = _TRACER.start_span(name, kind=kind, attributes=attributes)
    attached = trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False)
    # Without an SDK there is nothing to attach, and a turn of an agent is not to wait for it.
    with attached if span.get_span_context().is_valid else _NOTHING:
        try:
            yield span
        except BaseException as error:
            told[ERROR] = type(error).__name__
            fail(span, told[ERROR])
            raise


def _named(attributes: Mapping[str, Given]) -> dict[str, Value]:
    given = attributes.items()
    return {_NAMES.get(key) or f"afterword.{key}": _plain(value) for key, value in given if _is_told(key, value)}


def _logged(attributes: Mapping[str, Given]) -> dict[str, Value]:
    return {key: _plain(value) for key, value in attributes.items() if key in _LOGGED and _is_told(key, value)}


def _is_told(key: str, value: Given) -> bool:
    # Whoever gives a text for a scope is about to be refused; it may be a name.
    return value is not None and (key != "scope" or isinstance(value, Scope))


def _plain(value: Given) -> Value:
    return scope_mark(value) if isinstance(value, Scope) else value if value is not None else ""
