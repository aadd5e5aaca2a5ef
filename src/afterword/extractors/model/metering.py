"""Keep requests to models within a budget, and count the HTTP requests and tokens of each.

Without a meter every request is sent. If a meter is set (`metering`), each request reserves its worst-case cost before
it is sent. Afterwards the actual cost is recorded, even if the request failed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from afterword import telemetry
from afterword.extractors.errors import ExtractionError
from afterword.extractors.extractor import Usage
from afterword.recall.tokens import tokens_by_byte_size

if TYPE_CHECKING:
    import httpx

REASK_TOKENS = 300
"""How many tokens a repeated question adds to the prompt, besides the answer that did not fit."""

WEB_PAGE_STATUSES = frozenset({200, 404, 405})
"""If a web page has one of these statuses, the address is wrong. With others, it is the error page of a gateway."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request that is about to be sent: an estimate of its prompt, and the limit of its answer (0 for no limit).

    `answers` is the most answers that must be paid for: the model is asked again if an answer does not fit the schema.
    `operation` is the name of the request in OpenTelemetry's conventions.
    """

    model: str
    purpose: str
    prompt_tokens: int
    completion_limit: int
    answers: int
    operation: str = "chat"

    @property
    def worst_case(self) -> Usage:
        """The largest possible usage: every answer has its full length and is sent back with a question for another."""
        repeated = self.answers - 1
        prompt = self.prompt_tokens * self.answers + repeated * (self.completion_limit + REASK_TOKENS)
        return Usage(self.answers, prompt, self.completion_limit * self.answers)


@dataclass(slots=True)
class Bill:
    """What a request has cost.

    `is_estimate` is set if the endpoint did not report the whole usage. `fault` is the type of the error, if any.
    """

    usage: Usage = field(default_factory=Usage)
    is_answered: bool = False
    is_estimate: bool = False
    fault: str | None = None


class Meter(Protocol):
    """Admits requests within a budget, and records what they cost."""

    @property
    def completion_limit(self) -> int | None:
        """The most tokens of an answer, for a client that sets no limit itself. None means no limit."""

    def charging(self, request: ModelRequest, /) -> AbstractAsyncContextManager[Bill]:
        """Reserve the worst-case cost of the request, and record what is on the yielded bill at the end.

        If entering raises an error, the request is not sent. After an error or a cancellation inside, the worst-case
        cost is recorded.
        """


_meter: ContextVar[Meter | None] = ContextVar("meter", default=None)


def current_meter() -> Meter | None:
    """Return the meter of the running task."""
    return _meter.get()


@contextmanager
def metering(meter: Meter) -> Iterator[None]:
    """Set the meter for every request inside, of this task and of the tasks that it starts."""
    token = _meter.set(meter)
    try:
        yield
    finally:
        _meter.reset(token)


@asynccontextmanager
async def charging_to_current_meter(request: ModelRequest) -> AsyncIterator[Bill]:
    """Charge the request to the meter, if one is set, and yield its bill.

    A span and metrics report the request by OpenTelemetry's conventions for generative AI, without any of its text.
    """
    meter = current_meter()
    async with nullcontext(Bill()) if meter is None else meter.charging(request) as bill:
        began = perf_counter()
        with telemetry.client_span(f"{request.operation} {request.model}", _span_attributes(request)) as span:
            yield bill
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
        _measure_request(request, bill, perf_counter() - began)


def _common_attributes(request: ModelRequest) -> dict[str, telemetry.AttributeValue]:
    return {
        "gen_ai.operation.name": request.operation,
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": request.model,
    }


def _span_attributes(request: ModelRequest) -> dict[str, telemetry.AttributeValue]:
    attributes = {**_common_attributes(request), "afterword.purpose": request.purpose}
    if request.completion_limit:
        attributes["gen_ai.request.max_tokens"] = request.completion_limit
    if request.operation == "chat":
        attributes["gen_ai.output.type"] = "json"
    return attributes


def _measure_request(request: ModelRequest, bill: Bill, duration: float) -> None:
    """Record how long a request took and the tokens that it used."""
    attributes = _common_attributes(request)
    outcome = {**attributes, telemetry.ERROR: bill.fault} if bill.fault else attributes
    telemetry.measure(telemetry.Measure.GEN_AI_DURATION, duration, outcome)
    for kind, tokens in (("input", bill.usage.prompt_tokens), ("output", bill.usage.completion_tokens)):
        telemetry.measure(telemetry.Measure.GEN_AI_TOKENS, tokens, {**attributes, "gen_ai.token.type": kind})


class RequestTally:
    """Counts the HTTP requests, responses and tokens of one call of `ask`: with retries and repeated questions.

    `usage` is what the endpoint has reported.
    """

    def __init__(self) -> None:
        self.usage: Usage = Usage()
        self.responses: int = 0
        self.unreported: int = 0
        self.unreported_tokens: int = 0
        self.is_timeout = self.is_web_page = False

    def add_completion(self, completion: object) -> None:
        """Add the usage of a completion. Endpoints report it in various shapes, or not at all."""
        usage = getattr(completion, "usage", None)
        prompt_tokens = _token_count(usage, "prompt_tokens")
        if not prompt_tokens:
            self.unreported += 1
            self.unreported_tokens += tokens_by_byte_size(str(getattr(completion, "choices", "")))
        cached_tokens = _token_count(getattr(usage, "prompt_tokens_details", None), "cached_tokens")
        self.usage += Usage(0, prompt_tokens, _token_count(usage, "completion_tokens"), cached_tokens)

    def fill_in(self, bill: Bill, request: ModelRequest, outcome: object) -> None:
        """Write the reported usage on the bill, together with an estimate of what was not reported."""
        # How much the model generated for a request that timed out is unknown, so its limit is assumed.
        timed_out = self.usage.calls - self.responses if self.is_timeout else 0
        estimated = self.unreported + timed_out
        prompt_tokens = estimated * request.prompt_tokens
        completion_tokens = self.unreported_tokens + timed_out * request.completion_limit
        bill.usage = self.usage + Usage(0, prompt_tokens, completion_tokens)
        bill.fault = type(outcome).__name__ if isinstance(outcome, ExtractionError) else None
        bill.is_answered, bill.is_estimate = bill.fault is None, estimated > 0


_tally: ContextVar[RequestTally | None] = ContextVar("tally", default=None)


def current_tally() -> RequestTally | None:
    """Return the tally of the request that the running task is making, or None if it makes none."""
    return _tally.get()


@contextmanager
def counting_requests(tally: RequestTally) -> Iterator[None]:
    """Count every HTTP request inside in this tally."""
    token = _tally.set(tally)
    try:
        yield
    finally:
        _tally.reset(token)


async def count_sent_request(_request: object) -> None:
    """Count a request that is about to be sent."""
    if tally := current_tally():
        tally.usage += Usage(1)


async def count_received_response(response: httpx.Response) -> None:
    """Count a response that has arrived, and record whether it is a web page instead of an answer."""
    if tally := current_tally():
        tally.responses += 1
        tally.is_web_page = response.status_code in WEB_PAGE_STATUSES and "html" in response.headers.get(
            "content-type", ""
        )


def _token_count(usage: object, name: str) -> int:
    value = getattr(usage, name, 0)
    return value if isinstance(value, int) and value > 0 else 0
