"""Ask a language model for an answer of a given shape, over any OpenAI-compatible endpoint.

Everything that instructor and openai do, log or raise stays inside this module: callers see the errors of
`extractors.errors`, which never hold a user's words or a key. Both libraries are imported at the first question, since
they take most of a second that a command line cannot spare.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel

from afterword.extractors.errors import (
    AnswerCut,
    AnswerInvalid,
    AnswerRefused,
    EndpointMisconfigured,
    EndpointUnavailable,
    ExtractionError,
)
from afterword.extractors.extractor import Usage
from afterword.extractors.model.answer_shape import schema_tokens, wrapped
from afterword.extractors.model.metering import Bill, Question, current, metered
from afterword.extractors.model.modes import MODES, PROBE, Probe, first_that_works, remember, remembered
from afterword.extractors.model.modes import Mode as Mode
from afterword.extractors.model.replies import mended
from afterword.recall.tokens import estimated_tokens

if TYPE_CHECKING:
    from instructor import AsyncInstructor
    from openai import APIStatusError, AsyncOpenAI

Message = Mapping[str, str]
T = TypeVar("T", bound=BaseModel)

REASKS = 1
"""How often an answer that does not fit the schema is shown to the model again."""

TOKENS_PER_MESSAGE, TOKENS_OF_SHAPE = 8, 200
"""What a request adds to the words of a message, and to the schema of the answer."""

PASSING_STATUSES = frozenset({408, 409, 429})
WINDOW_TOO_LONG = frozenset({"context_length_exceeded", "string_above_max_length"})


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Which model answers, where, and within which limits.

    `base_url` None is the endpoint that the openai package takes by itself; only then may it also look for the key
    itself. `max_retries` is how often a request is sent again after 429, 5xx or a timeout; `mode` how the shape of
    the answer is asked for. With "auto" the endpoint is tried once with a tiny question; `modes_file` keeps what was
    found for later processes. Raises `EndpointMisconfigured` where no request could be made with it.
    """

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    max_retries: int = 3
    mode: Mode | Literal["auto"] = "json_schema"
    max_completion_tokens: int | None = None
    modes_file: Path | None = None

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise EndpointMisconfigured("no model is named; set the model, for example gpt-4o-mini")
        if self.base_url is not None and urlsplit(self.base_url).scheme not in ("http", "https"):
            raise EndpointMisconfigured("the base URL of the model endpoint must start with http:// or https://")
        if self.mode not in ("auto", *MODES):
            raise EndpointMisconfigured(f"{self.mode!r} is no mode; use auto, {', '.join(MODES)}")

    @property
    def place(self) -> str:
        """The model and its address for messages, without user name, password or query."""
        if self.base_url is None:
            return f"model {self.model!r} at the default endpoint"
        url = urlsplit(self.base_url)
        return f"model {self.model!r} at {url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"


class ModelClient:
    """One shared connection pool to one endpoint, opened at the first question; close it, or use `async with`.

    A client that is dropped without being closed can hang the requests of the next one in the same event loop.
    """

    def __init__(self, settings: ModelSettings) -> None:
        self.settings = settings
        self._openai: AsyncOpenAI | None = None
        self._instructors: dict[Mode, AsyncInstructor] = {}
        self._mode: Mode | None = None if settings.mode == "auto" else settings.mode
        self._choosing = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; the next question would open new ones."""
        client, self._openai, self._instructors = self._openai, None, {}
        if client is not None:
            await client.close()

    async def ask(
        self, messages: Sequence[Message], response_model: type[T], *, purpose: str = "extraction"
    ) -> tuple[T, Usage]:
        """Return the model's answer in the shape of `response_model`, and what it cost.

        `messages` are dicts with `role` and `content`; their text is sent as it is. `Usage.calls` counts requests on
        the wire, retries, re-asks and the trying of modes included; where the endpoint reports no tokens they count 0.
        `purpose` is what a meter keeps the cost under; a meter may refuse the question with an error of its own before
        it is asked. Raises a leaf of `ExtractionError`, each naming model and address and what to do next, with what
        was spent.
        """
        question = self.question(messages, response_model, purpose)
        async with metered(question) as bill:
            tally = _Tally()
            token = _asking.set(tally)
            try:
                outcome = await self._answer(messages, response_model, question.completion_limit or None)
            finally:
                _asking.reset(token)
            tally.put_on(bill, question, outcome)
        # Raised here, outside of any handler: the original exception holds whole prompts, and would be printed along.
        if isinstance(outcome, ExtractionError):
            outcome.usage = tally.usage
            raise outcome
        return outcome, tally.usage

    def question(self, messages: Sequence[Message], response_model: type[BaseModel], purpose: str) -> Question:
        """Return what asking this would be: the size of its prompt, on the high side, and the limit of its answer."""
        words = sum(estimated_tokens(text) for message in messages for text in message.values())
        shape = schema_tokens(response_model, 2 if self.settings.mode == "json" else None) + TOKENS_OF_SHAPE
        meter = current()
        limit = self.settings.max_completion_tokens or (meter.completion_limit if meter else None) or 0
        prompt_tokens = words + shape + TOKENS_PER_MESSAGE * len(messages)
        return Question(self.settings.model, purpose, prompt_tokens, limit, answers=REASKS + 1)

    async def probe(self) -> dict[Mode, ExtractionError | None]:
        """Ask the tiny question in every mode; return what went wrong in each, None where it works.

        With mode "auto" the first that works is taken, and kept in the `modes_file`.
        """
        token = _asking.set(_Tally())
        try:
            found = {mode: await self._tried(mode) for mode in MODES}
        finally:
            _asking.reset(token)
        works = [mode for mode, fault in found.items() if fault is None]
        if works and self.settings.mode == "auto":
            self._keep(works[0])
        return found

    async def _chosen(self) -> Mode | ExtractionError:
        """Return the mode to ask in; with "auto" what is remembered, or the first that works."""
        async with self._choosing:
            if self._mode is None and self.settings.modes_file is not None:
                self._mode = remembered(self.settings.modes_file, self._place())
            if self._mode is None:
                found = await first_that_works(self._tried)
                if isinstance(found, ExtractionError):
                    return found
                self._keep(found)
            return self._mode or MODES[0]

    async def _tried(self, mode: Mode) -> ExtractionError | None:
        answer = await self._attempt(PROBE, Probe, mode, None, reasks=0)
        return answer if isinstance(answer, ExtractionError) else None

    def _keep(self, mode: Mode) -> None:
        self._mode = mode
        if self.settings.modes_file is not None:
            remember(self.settings.modes_file, self._place(), mode)

    def _place(self) -> str:
        """The place as it is remembered: the address that is asked, also where the environment names it."""
        return replace(self.settings, base_url=str(self._connection().base_url)).place

    async def _answer(
        self, messages: Sequence[Message], response_model: type[T], limit: int | None
    ) -> T | ExtractionError:
        mode = await self._chosen()
        if isinstance(mode, ExtractionError):
            return mode
        return await self._attempt(messages, response_model, mode, limit)

    async def _attempt(
        self,
        messages: Sequence[Message],
        response_model: type[T],
        mode: Mode,
        limit: int | None,
        *,
        reasks: int = REASKS,
    ) -> T | ExtractionError:
        from instructor.core import InstructorError
        from openai import APITimeoutError, OpenAIError

        limits: dict[str, Any] = {} if limit is None else {"max_completion_tokens": limit}
        try:
            answer, completion = await self._opened(mode).create_with_completion(
                # Never `context=`: it would render every message as a template, users' words included.
                messages=[dict(message) for message in messages],  # type: ignore[misc]  # plain dicts, as instructor takes them
                response_model=wrapped(response_model),
                max_retries=reasks,
                model=self.settings.model,
                **limits,
            )
        except (InstructorError, OpenAIError) as error:
            if tally := _asking.get():
                tally.is_timeout = isinstance(error.__cause__ or error, APITimeoutError)
            return translated(error, self.settings.place)
        # What a filter has let through of an answer may look like a whole one.
        return _declined(self.settings.place) if _is_declined(completion) else answer

    def _opened(self, mode: Mode) -> AsyncInstructor:
        if mode not in self._instructors:
            import instructor

            modes = {"json_schema": instructor.Mode.JSON_SCHEMA, "tools": instructor.Mode.TOOLS}
            opened = instructor.from_openai(self._connection(), mode=modes.get(mode, instructor.Mode.JSON))
            opened.on("completion:response", _received)
            self._instructors[mode] = opened
            _silence()
        return self._instructors[mode]

    def _connection(self) -> AsyncOpenAI:
        if self._openai is None:
            self._openai = self._connected()
        return self._openai

    def _connected(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        settings = self.settings
        # The key that openai finds in the environment belongs to its own endpoint; others get none by accident.
        key = settings.api_key or (None if settings.base_url is None else "none")
        return AsyncOpenAI(
            api_key=key,
            base_url=settings.base_url,
            timeout=settings.timeout_s,
            max_retries=settings.max_retries,
            http_client=DefaultAsyncHttpxClient(event_hooks={"request": [_count], "response": [_heard]}),
        )


class _Tally:
    """Counts the requests of one question, and the tokens of its answers, those that did not fit included."""

    def __init__(self) -> None:
        self.calls = self.responses = self.unreported = self.unreported_tokens = 0
        self.prompt_tokens = self.completion_tokens = self.cached_tokens = 0
        self.is_timeout = False

    @property
    def usage(self) -> Usage:
        """What the endpoint has reported."""
        return Usage(self.calls, self.prompt_tokens, self.completion_tokens, self.cached_tokens)

    def put_on(self, bill: Bill, question: Question, outcome: object) -> None:
        """Write what was reported on the bill, and what was not as it is estimated."""
        # Of a request that was given up nobody knows how far the model came.
        given_up = self.calls - self.responses if self.is_timeout else 0
        missing = self.unreported + given_up
        prompt_tokens = missing * question.prompt_tokens
        completion_tokens = self.unreported_tokens + given_up * question.completion_limit
        bill.usage = self.usage + Usage(0, prompt_tokens, completion_tokens)
        bill.fault = type(outcome).__name__ if isinstance(outcome, ExtractionError) else None
        bill.is_answered, bill.is_estimate = bill.fault is None, missing > 0


_asking: ContextVar[_Tally | None] = ContextVar("asking", default=None)


async def _count(_request: object) -> None:
    if tally := _asking.get():
        tally.calls += 1


async def _heard(_response: object) -> None:
    if tally := _asking.get():
        tally.responses += 1


def _add(completion: object) -> None:
    """Add what an answer cost to the tally of its question; endpoints report in odd shapes, or not at all."""
    tally = _asking.get()
    if tally is None:
        return
    usage = getattr(completion, "usage", None)
    prompt_tokens = _number(usage, "prompt_tokens")
    if not prompt_tokens:
        tally.unreported += 1
        tally.unreported_tokens += estimated_tokens(str(getattr(completion, "choices", "")))
    tally.prompt_tokens += prompt_tokens
    tally.completion_tokens += _number(usage, "completion_tokens")
    tally.cached_tokens += _number(getattr(usage, "prompt_tokens_details", None), "cached_tokens")


def _number(of: object, name: str) -> int:
    value = getattr(of, name, 0)
    return value if isinstance(value, int) and value > 0 else 0


def _received(completion: object) -> None:
    """Take note of an answer before instructor reads it (and adds up its usage in place)."""
    _add(completion)
    mended(completion)


def _withhold(record: logging.LogRecord) -> bool:
    return record.levelno <= logging.DEBUG or _asking.get() is None


def _silence() -> None:
    """Keep instructor's log records about our questions at DEBUG: the others quote whole prompts and answers.

    A filter on a parent logger does not see its children's records, so each one gets it. The application's own use of
    instructor is left alone.
    """
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "instructor":
            logging.getLogger(name).addFilter(_withhold)


def translated(error: Exception, place: str) -> ExtractionError:
    """Return what an exception of openai or instructor means for us, told without any of its text."""
    from instructor.core import IncompleteOutputException
    from openai import APIConnectionError, APIStatusError, APITimeoutError, OpenAIError

    cause = error.__cause__ if isinstance(error.__cause__, OpenAIError) else error
    if isinstance(error, IncompleteOutputException):
        return AnswerCut(
            f"{place}: the answer was cut at its length limit; take a model with more room, or ask for less"
        )
    if isinstance(cause, APIStatusError):
        return _refused_request(cause, place)
    if isinstance(cause, APITimeoutError):
        return EndpointUnavailable(f"{place}: no answer in time; the session is tried again, or raise the timeout")
    if isinstance(cause, APIConnectionError):
        return EndpointUnavailable(f"{place}: no connection; check that the endpoint runs and can be reached")
    if isinstance(cause, OpenAIError):
        return EndpointMisconfigured(
            f"{place}: no request could be made; set an API key, or a base URL that needs none"
        )
    return _unusable_answer(error, place)


def _refused_request(error: APIStatusError, place: str) -> ExtractionError:
    status = error.status_code
    if status == 413 or str(error.code) in WINDOW_TOO_LONG:
        return AnswerCut(
            f"{place}: HTTP {status}, the request is too long; take a model with more room, or ask for less"
        )
    if status in PASSING_STATUSES or status >= 500:
        return EndpointUnavailable(f"{place}: HTTP {status} after all retries; the session is tried again later")
    todo = {
        401: "check the API key",
        403: "check what the API key may use",
        404: "check the model's name and the base URL",
    }.get(status, "check the model's name, and with `afterword doctor --probe` which mode the endpoint knows")
    return EndpointMisconfigured(f"{place}: HTTP {status}; {todo}", status=status)


def _unusable_answer(error: Exception, place: str) -> ExtractionError:
    # With forced tools instructor gives up at a refusal before it keeps the completion; this is how it shows.
    if isinstance(error.__cause__, AssertionError) or _is_declined(getattr(error, "last_completion", None)):
        return _declined(place)
    attempts = getattr(error, "n_attempts", 1)
    return AnswerInvalid(
        f"{place}: no answer fitted the schema in {attempts} attempts; try another mode or a more capable model"
    )


def _declined(place: str) -> AnswerRefused:
    return AnswerRefused(f"{place}: the model declined to answer; look at the session, or try another model")


def _is_declined(completion: Any) -> bool:
    return any(
        getattr(getattr(choice, "message", None), "refusal", None)
        or getattr(choice, "finish_reason", None) == "content_filter"
        for choice in getattr(completion, "choices", None) or []
    )
