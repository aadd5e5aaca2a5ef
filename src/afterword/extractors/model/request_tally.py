"""Count the HTTP requests of one request to a model, and the tokens of its answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from afterword.extractors.errors import ExtractionError
from afterword.extractors.extractor import Usage
from afterword.extractors.model.metering import Bill, ModelRequest
from afterword.recall.tokens import estimated_tokens

if TYPE_CHECKING:
    import httpx

WEB_PAGE_STATUSES = frozenset({200, 404, 405})
"""With these statuses a web page means that the address is wrong. With others a gateway shows it."""


class RequestTally:
    """The counts of one request: retries, repeated questions, and answers that did not fit are all included."""

    def __init__(self) -> None:
        self.calls = self.responses = self.unreported = self.unreported_tokens = 0
        self.prompt_tokens = self.completion_tokens = self.cached_tokens = 0
        self.is_timeout = self.is_web_page = False

    @property
    def usage(self) -> Usage:
        """The usage that the endpoint has reported."""
        return Usage(self.calls, self.prompt_tokens, self.completion_tokens, self.cached_tokens)

    def add_completion(self, completion: object) -> None:
        """Add the usage of a completion. Endpoints report it in various shapes, or not at all."""
        usage = getattr(completion, "usage", None)
        prompt_tokens = _token_count(usage, "prompt_tokens")
        if not prompt_tokens:
            self.unreported += 1
            self.unreported_tokens += estimated_tokens(str(getattr(completion, "choices", "")))
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += _token_count(usage, "completion_tokens")
        self.cached_tokens += _token_count(getattr(usage, "prompt_tokens_details", None), "cached_tokens")

    def fill_in(self, bill: Bill, request: ModelRequest, outcome: object) -> None:
        """Write the reported usage on the bill, and an estimate of what was not reported."""
        # Nobody knows how much the model generated for a request that timed out.
        timed_out = self.calls - self.responses if self.is_timeout else 0
        estimated = self.unreported + timed_out
        prompt_tokens = estimated * request.prompt_tokens
        completion_tokens = self.unreported_tokens + timed_out * request.completion_limit
        bill.usage = self.usage + Usage(0, prompt_tokens, completion_tokens)
        bill.fault = type(outcome).__name__ if isinstance(outcome, ExtractionError) else None
        bill.is_answered, bill.is_estimate = bill.fault is None, estimated > 0


_tally: ContextVar[RequestTally | None] = ContextVar("tally", default=None)


def current_tally() -> RequestTally | None:
    """Return the tally of the request that the running task is making, None if it makes none."""
    return _tally.get()


@contextmanager
def counting(tally: RequestTally) -> Iterator[None]:
    """Count every HTTP request inside on the tally."""
    token = _tally.set(tally)
    try:
        yield
    finally:
        _tally.reset(token)


async def count_request(_request: object) -> None:
    """Count a request that is about to be sent."""
    if tally := current_tally():
        tally.calls += 1


async def count_response(response: httpx.Response) -> None:
    """Count a response that has arrived, and note whether it is a web page in place of an answer."""
    if tally := current_tally():
        tally.responses += 1
        tally.is_web_page = response.status_code in WEB_PAGE_STATUSES and "html" in response.headers.get(
            "content-type", ""
        )


def _token_count(usage: object, name: str) -> int:
    value = getattr(usage, name, 0)
    return value if isinstance(value, int) and value > 0 else 0
