"""Spans, metrics and log fields. They contain ids, names and numbers, never a user's words.

Only the API of OpenTelemetry is used. Without its SDK a span is dropped, and costs some microseconds.
docs/observability.md lists all spans, metrics and fields.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
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
AttributeValue = str | bool | int | float
Attribute = AttributeValue | Scope | None

SCOPE_DIGITS = 16
ERROR = "error.type"


class Stage(StrEnum):
    """The stages of the work. Each of them is recorded as a span, and its duration in a histogram."""

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
    REDO = "afterword.redo"
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
    """The counters."""

    SESSIONS = "afterword.sessions"
    ASSERTIONS = "afterword.assertions"
    REFUSED = "afterword.candidates.refused"
    VERDICTS = "afterword.verdicts"
    REMAINDERS_IGNORED = "afterword.remainders.ignored"
    CALLS = "afterword.calls"
    TOKENS = "afterword.tokens"
    COST = "afterword.cost"
    RECALLS = "afterword.recalls"
    CACHE = "afterword.cache.lookups"
    RETRIES = "afterword.retries"
    JOBS = "afterword.jobs"


class Measure(StrEnum):
    """The histograms. `_UNITS` has their units. The last two names are from the conventions of OpenTelemetry."""

    STAGE = "afterword.stage.duration"
    QUEUE_AGE = "afterword.queue.age"
    GEN_AI_TOKENS = "gen_ai.client.token.usage"
    GEN_AI_DURATION = "gen_ai.client.operation.duration"


_UNITS: Mapping[Count | Measure, str] = {
    Count.SESSIONS: "{session}",
    Count.ASSERTIONS: "{assertion}",
    Count.REFUSED: "{candidate}",
    Count.VERDICTS: "{verdict}",
    Count.REMAINDERS_IGNORED: "{remainder}",
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


# Both are proxies: an application may set its providers of tracers and meters later.
_TRACER = trace.get_tracer("afterword", _version())
_METER = metrics.get_meter("afterword", _version())
_COUNTERS = {name: _METER.create_counter(name, _UNITS[name]) for name in Count}
_HISTOGRAMS = {name: _METER.create_histogram(name, _UNITS[name]) for name in Measure}

_NOTHING = nullcontext()
_LOGGED = frozenset({"scope", "session_id", "run_id", "job"})
_NAMES = {"model": "gen_ai.request.model", "token_type": "gen_ai.token.type"}
"""Attributes that have a name in OpenTelemetry's conventions. Every other attribute gets the prefix `afterword.`."""


@dataclass(frozen=True, slots=True)
class _CurrentStage:
    """The current stage of the running task: its span, and the fields of its log records."""

    span: Span
    fields: Mapping[str, AttributeValue]


_current: ContextVar[_CurrentStage] = ContextVar("current", default=_CurrentStage(trace.INVALID_SPAN, {}))  # noqa: B039 - frozen


@lru_cache(maxsize=1000)
def scope_mark(scope: Scope) -> str:
    """Return the hash that stands for a scope in spans and logs, since the name of a user may be an email address.

    The hash has no key: anybody who knows the name of a scope can find its traces, and anybody who has a trace can
    check a guess.
    """
    return hashlib.sha256(str(scope).encode()).hexdigest()[:SCOPE_DIGITS]


@contextmanager
def stage(name: Stage, **attributes: Attribute) -> Iterator[None]:
    """Run the block as a stage: in a span, and with its duration measured. Of an error only the type is recorded.

    A scope is recorded as its hash. An attribute that is None is left out. `scope`, `session_id`, `run_id` and `job`
    are also fields of the log records inside.
    """
    began, labels = perf_counter(), {"afterword.stage": name.value}
    try:
        with _open_span(name, _span_attributes(attributes), labels) as span:
            fields = {**_current.get().fields, "stage": name.value, **_log_fields(attributes)}
            token = _current.set(_CurrentStage(span, fields))
            try:
                yield
            finally:
                _current.reset(token)
    finally:
        _HISTOGRAMS[Measure.STAGE].record(perf_counter() - began, labels)


def note(**attributes: Attribute) -> None:
    """Add attributes to the current stage of the running task."""
    current = _current.get()
    if current.span.is_recording():
        current.span.set_attributes(_span_attributes(attributes))
    if logged := _log_fields(attributes):
        _current.set(replace(current, fields={**current.fields, **logged}))


def staged(name: Stage, *parameters: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator that runs a function, plain or async, as a stage that records these parameters."""

    def decorator(work: Callable[P, T]) -> Callable[P, T]:
        places = {
            parameter: place for place, parameter in enumerate(signature(work).parameters) if parameter in parameters
        }

        @wraps(work)
        def run_as_stage(*args: P.args, **kwargs: P.kwargs) -> T:
            with stage(name, **_arguments(places, args, kwargs)):
                return work(*args, **kwargs)

        @wraps(work)
        async def run_as_stage_async(*args: P.args, **kwargs: P.kwargs) -> Any:
            with stage(name, **_arguments(places, args, kwargs)):
                return await cast(Awaitable[Any], work(*args, **kwargs))

        return cast(Callable[P, T], run_as_stage_async) if iscoroutinefunction(work) else run_as_stage

    return decorator


def _arguments(places: Mapping[str, int], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call for the parameters at these places, None for those that were not passed."""
    return {
        parameter: args[place] if place < len(args) else kwargs.get(parameter) for parameter, place in places.items()
    }


def client_span(name: str, attributes: Mapping[str, AttributeValue]) -> AbstractContextManager[Span]:
    """Open the span of a request to a service, with the name and attributes of OpenTelemetry's conventions."""
    return _open_span(name, attributes, {}, kind=SpanKind.CLIENT)


def mark_span_failed(span: Span, kind: str) -> None:
    """Mark a span as failed with an error of this type."""
    span.set_attribute(ERROR, kind)
    span.set_status(Status(StatusCode.ERROR))


def count(counter: Count, amount: float = 1, **attributes: Attribute) -> None:
    """Add to a counter, unless the amount is 0."""
    if amount:
        _COUNTERS[counter].add(amount, _span_attributes(attributes))


def measure(histogram: Measure, amount: float, attributes: Mapping[str, AttributeValue] | None = None) -> None:
    """Record a value in a histogram, with attributes of OpenTelemetry's conventions."""
    _HISTOGRAMS[histogram].record(amount, attributes)


class Logs(logging.LoggerAdapter[logging.Logger]):
    """A logger whose records have the fields of the current stage: stage, scope, session_id, run_id, job."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Add the fields of the current stage to those of the call."""
        return msg, {**kwargs, "extra": {**_current.get().fields, **(kwargs.get("extra") or {})}}


def logs(name: str) -> Logs:
    """Return the logger of a module, with the fields of the current stage."""
    return Logs(logging.getLogger(name), {})


@contextmanager
def _open_span(
    name: str, attributes: Mapping[str, AttributeValue], labels: dict[str, str], *, kind: SpanKind = SpanKind.INTERNAL
) -> Iterator[Span]:
    """Open a span. If the block raises an error, its type is recorded in the span and in `labels`."""

    def record_error(kind: type[BaseException] | None, _error: object, _traceback: object) -> None:
        if kind is not None:
            labels[ERROR] = kind.__name__
            mark_span_failed(span, kind.__name__)

    span = _TRACER.start_span(name, kind=kind, attributes=attributes)
    attached = trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False)
    # Without an SDK the span need not be attached, which saves time in a turn of an agent.
    with attached if span.get_span_context().is_valid else _NOTHING, ExitStack() as stack:
        stack.push(record_error)
        yield span


def _span_attributes(attributes: Mapping[str, Attribute]) -> dict[str, AttributeValue]:
    return {_NAMES.get(key) or f"afterword.{key}": value for key, value in _recorded_attributes(attributes)}


def _log_fields(attributes: Mapping[str, Attribute]) -> dict[str, AttributeValue]:
    return {key: value for key, value in _recorded_attributes(attributes) if key in _LOGGED}


def _recorded_attributes(attributes: Mapping[str, Attribute]) -> Iterator[tuple[str, AttributeValue]]:
    """Yield the attributes that are not None, a scope as its hash."""
    for key, value in attributes.items():
        if isinstance(value, Scope):
            yield key, scope_mark(value)
        # A scope passed as text is left out: it may be a person's name.
        elif value is not None and key != "scope":
            yield key, value
