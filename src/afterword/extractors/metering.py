"""The border at which a question to a model meets whoever pays for it.

A client asks nobody's leave as long as nobody meters it. Where a meter is set (`metering`), each question reserves what
it may cost before it is asked, and settles what it did cost afterwards, also where no answer was had.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

from afterword.extractors.extractor import Usage

REASK_TOKENS = 300
"""What a re-ask adds to a prompt besides the answer that it objects to."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about to be asked: an estimate of its prompt, and the limit of its answer (0 where there is none).

    `answers` is how many answers may be paid for: one that does not fit its shape is asked for again.
    """

    model: str
    purpose: str
    prompt_tokens: int
    completion_limit: int
    answers: int

    @property
    def bound(self) -> Usage:
        """What it may cost: every answer at its limit, each shown again to the model with the objection to it."""
        again = self.answers - 1
        prompt = self.prompt_tokens * self.answers + again * (self.completion_limit + REASK_TOKENS)
        return Usage(self.answers, prompt, self.completion_limit * self.answers)


@dataclass(slots=True)
class Bill:
    """What a question has cost. What the endpoint did not report `is_estimate`."""

    usage: Usage = field(default_factory=Usage)
    is_answered: bool = False
    is_estimate: bool = False


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
        yield bill
        return
    ticket = await meter.reserve(question)
    try:
        yield bill
    except BaseException:
        meter.forsake(ticket)
        raise
    await meter.settle(ticket, bill)
