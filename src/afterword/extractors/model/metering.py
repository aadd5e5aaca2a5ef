"""The border at which a question to a model meets whoever pays for it.

A client asks nobody's leave as long as nobody meters it. Where a meter is set (`metering`), each question reserves what
it may cost before it is asked, and settles what it did cost afterwards, also where no answer was had.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import Protocol

from opentelemetry.trace import Span

from afterword import telemetry
from afterword.extractors.extractor import Usage
from afterword.telemetry import ERROR, Measure, Value

REASK_TOKENS = 300
"""What a re-ask adds to a prompt besides the answer that it objects to."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about to be asked: an estimate of its prompt, and the limit of its answer (0 where there is none).

    `answers` is how many answers may be paid for: one that does not fit its shape is asked for again. `operation` is
    what the conventions of OpenTelemetry call it.
    """

    model: str
    purpose: str
    prompt_tokens: int
    completion_limit: int
    answers: int
    operation: str = "chat"

    @property
    def bound(self) -> Usage:
        """What it may cost: every answer at its limit, each shown again to the model with the objection to it."""
        again = self.answers - 1
        prompt = self.prompt_tokens * self.answers + again * (self.completion_limit + REASK_TOKENS)
        return Usage(self.answers, prompt, self.completion_limit * self.answers)


@dataclass(slots=True)
class Bill:
    """What a question has cost. What the endpoint did not report `is_estimate`; `fault` is the type of the error that
    came in place of an answer."""

    usage: Usage = field(default_factory=Usage)
    is_answered: bool = False
    is_estimate: bool = False
    fault: str | None = None


class Meter(Protocol):
    """Whoever pays: lets questions pass within what is left, and keeps what they cost."""

    @property
    def completion_limit(self) -> int | None:
        """The longest answer, in tokens, that is asked for where the client sets no limit itself; None for any."""
        ...

    async def reserve(self, question: Question) -> int:
        """Set aside what the question may cost and return a ticket for it, or raise: then it is not asked."""
        ...

    async def settle(self, ticket: int, bill: Bill) -> None:
        """Put what the question has cost in place of what it might have."""
        ...

    def forsake(self, ticket: int) -> None:
        """Take note that the question was cut short: it counts at what it may have cost."""
        ...


_meter: ContextVar[Meter | None] = ContextVar("meter", default=None)


def current() -> Meter | None:
    """Return the meter of the running task."""
    return _meter.get()


@contextmanager
def metering(meter: Meter) -> Iterator[None]:
    """Meter every question that is asked inside, by this task and those that it starts."""
    token = _meter.set(meter)
    try:
        yield
    finally:
        _meter.reset(token)


@asynccontextmanager
async def metered(question: Question) -> AsyncIterator[Bill]:
    """Reserve before, and settle afterwards what stands on the bill by then."""
    meter, bill = current(), Bill()
    if meter is None:
        with _told(question, bill):
            yield bill
        return
    ticket = await meter.reserve(question)
    try:
        with _told(question, bill):
            yield bill
    except BaseException:  # cut short, also by a cancellation, it is counted at what it may have cost
        meter.forsake(ticket)
        raise
    await meter.settle(ticket, bill)


@contextmanager
def _told(question: Question, bill: Bill) -> Iterator[None]:
    """Tell of a question as OpenTelemetry's conventions for generative AI do, in none of its words."""
    begun, asked = perf_counter(), asked_of(question)
    limits = {"gen_ai.request.max_tokens": question.completion_limit} if question.completion_limit else {}
    purpose = {"afterword.purpose": question.purpose}
    if question.operation == "chat":
        purpose["gen_ai.output.type"] = "json"
    with telemetry.client_span(f"{question.operation} {question.model}", {**asked, **limits, **purpose}) as span:
        yield
        _tell_bill(span, bill)
    ended = {**asked, ERROR: bill.fault} if bill.fault else asked
    telemetry.measure(Measure.GEN_AI_DURATION, perf_counter() - begun, ended)
    for kind, tokens in (("input", bill.usage.prompt_tokens), ("output", bill.usage.completion_tokens)):
        telemetry.measure(Measure.GEN_AI_TOKENS, tokens, {**asked, "gen_ai.token.type": kind})


def asked_of(question: Question) -> dict[str, Value]:
    """Return what the conventions tell of any question to a model."""
    return {
        "gen_ai.operation.name": question.operation,
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": question.model,
    }


def _tell_bill(span: Span, bill: Bill) -> None:
    span.set_attributes(
        {
            "gen_ai.usage.input_tokens": bill.usage.prompt_tokens,
            "gen_ai.usage.output_tokens": bill.usage.completion_tokens,
            "gen_ai.usage.cache_read.input_tokens": bill.usage.cached_tokens,
            "afterword.calls": bill.usage.calls,
        }
    )
    if bill.fault:
        telemetry.fail(span, bill.fault)
