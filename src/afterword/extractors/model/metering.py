"""Meter the cost of requests to models.

Without a meter every request is sent. If a meter is set (`metering`), each request reserves its worst-case cost before
it is sent, and settles its actual cost afterwards, also if it failed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import Protocol

from opentelemetry.trace import Span

from afterword import telemetry
from afterword.extractors.extractor import Usage
from afterword.telemetry import ERROR, AttributeValue, Measure

REASK_TOKENS = 300
"""How many tokens a repeated question adds to the prompt, besides the answer that it rejects."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request that is about to be sent: an estimate of its prompt, and the limit of its answer (0 for no limit).

    `answers` is how many answers may have to be paid for, since an answer that does not fit its schema is asked for
    again. `operation` is the name of the request in OpenTelemetry's conventions.
    """

    model: str
    purpose: str
    prompt_tokens: int
    completion_limit: int
    answers: int
    operation: str = "chat"

    @property
    def worst_case(self) -> Usage:
        """The largest usage: every answer at its limit, each shown to the model again with the objection to it."""
        repeated = self.answers - 1
        prompt = self.prompt_tokens * self.answers + repeated * (self.completion_limit + REASK_TOKENS)
        return Usage(self.answers, prompt, self.completion_limit * self.answers)


@dataclass(slots=True)
class Bill:
    """What a request has cost.

    `is_estimate` is set if the endpoint did not report all of its usage. `fault` is the type of the error, if any.
    """

    usage: Usage = field(default_factory=Usage)
    is_answered: bool = False
    is_estimate: bool = False
    fault: str | None = None


class Meter(Protocol):
    """Admits requests within a budget, and records what they cost."""

    @property
    def completion_limit(self) -> int | None:
        """The limit of an answer in tokens, if the client sets none itself; None for no limit."""
        ...

    def charging(self, request: ModelRequest, /) -> AbstractAsyncContextManager[Bill]:
        """Reserve the worst-case cost of the request, and settle what is on the bill at the end.

        If entering raises, nothing is sent. After an error or a cancellation inside, the worst-case cost stands.
        """
        ...


_meter: ContextVar[Meter | None] = ContextVar("meter", default=None)


def current_meter() -> Meter | None:
    """Return the meter of the running task."""
    return _meter.get()


@contextmanager
def metering(meter: Meter) -> Iterator[None]:
    """Meter every request that is sent inside, by this task and by the tasks that it starts."""
    token = _meter.set(meter)
    try:
        yield
    finally:
        _meter.reset(token)


@asynccontextmanager
async def metered(request: ModelRequest) -> AsyncIterator[Bill]:
    """Charge the request to the meter, if one is set, and yield its bill."""
    meter = current_meter()
    async with nullcontext(Bill()) if meter is None else meter.charging(request) as bill:
        with _traced(request, bill):
            yield bill


@contextmanager
def _traced(request: ModelRequest, bill: Bill) -> Iterator[None]:
    """Report the request as OpenTelemetry's conventions for generative AI ask for, without any of its text."""
    began = perf_counter()
    attributes: dict[str, AttributeValue] = {
        "gen_ai.operation.name": request.operation,
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": request.model,
    }
    span_attributes = {**attributes, "afterword.purpose": request.purpose}
    if request.completion_limit:
        span_attributes["gen_ai.request.max_tokens"] = request.completion_limit
    if request.operation == "chat":
        span_attributes["gen_ai.output.type"] = "json"
    with telemetry.client_span(f"{request.operation} {request.model}", span_attributes) as span:
        yield
        _add_bill(span, bill)
    outcome = {**attributes, ERROR: bill.fault} if bill.fault else attributes
    telemetry.measure(Measure.GEN_AI_DURATION, perf_counter() - began, outcome)
    for kind, tokens in (("input", bill.usage.prompt_tokens), ("output", bill.usage.completion_tokens)):
        telemetry.measure(Measure.GEN_AI_TOKENS, tokens, {**attributes, "gen_ai.token.type": kind})


def _add_bill(span: Span, bill: Bill) -> None:
    span.set_attributes(
        {
            "gen_ai.usage.input_tokens": bill.usage.prompt_tokens,
            "gen_ai.usage.output_tokens": bill.usage.completion_tokens,
            "gen_ai.usage.cache_read.input_tokens": bill.usage.cached_tokens,
            "afterword.calls": bill.usage.calls,
        }
    )
    if bill.fault:
        telemetry.mark_span_failed(span, bill.fault)
