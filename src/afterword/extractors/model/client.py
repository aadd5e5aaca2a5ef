"""Ask a language model for an answer that fits a schema, at any OpenAI-compatible endpoint.

Callers see only the errors of `extractors.errors`, which never contain a user's words or a key. Log records of
instructor about our requests are dropped above DEBUG. The libraries instructor and openai are imported at the first
request, because importing them takes most of a second, which is too long for a command line.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel

from afterword.extractors.errors import EndpointMisconfigured, EndpointUnavailable, ExtractionError
from afterword.extractors.extractor import Usage
from afterword.extractors.model.answer_schemas import schema_tokens, stand_in_class
from afterword.extractors.model.metering import (
    ModelRequest,
    RequestTally,
    charging_to_current_meter,
    count_received_response,
    count_sent_request,
    counting_requests,
    current_meter,
    current_tally,
)
from afterword.extractors.model.modes import MODES, PROBE, Probe, save_mode, saved_mode
from afterword.extractors.model.modes import Mode as Mode
from afterword.extractors.model.replies import clean_completion, is_refusal, refusal_error, translated_error
from afterword.recall.tokens import tokens_by_byte_size

if TYPE_CHECKING:
    from instructor import AsyncInstructor
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

Message = Mapping[str, str]
T = TypeVar("T", bound=BaseModel)

REASKS = 1
"""How often the model is asked again if its answer does not fit the schema. It is shown that answer."""

TOKENS_PER_MESSAGE, TOKENS_OF_SHAPE = 8, 200
"""Estimated tokens of a request besides its texts: for each message, and once for how the schema is sent."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The model, the address of its endpoint, and the limits of a request.

    Without `base_url`, the openai package chooses the endpoint and may read the key from the environment. `max_retries`
    is how often a request is sent again after HTTP 429, 5xx or a timeout. `mode` is how the schema of the answer is
    sent. With "auto", the modes are tried with a tiny question, and the first that works is saved in `modes_file` for
    later processes.

    Raises `EndpointMisconfigured` if no request could be made with these settings.
    """

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    max_retries: int = 3
    mode: Mode | Literal["auto"] = "auto"
    max_completion_tokens: int | None = None
    modes_file: Path | None = None

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise EndpointMisconfigured("no model is named; set the model, for example gpt-4o-mini")
        if self.base_url is not None and urlsplit(self.base_url).scheme not in ("http", "https"):
            raise EndpointMisconfigured("the base URL of the model endpoint must start with http:// or https://")
        if self.mode not in ("auto", *MODES):
            raise EndpointMisconfigured(f"{self.mode!r} is not a mode; use auto, {', '.join(MODES)}")

    @property
    def place(self) -> str:
        """The model and its address as messages show them, without user name, password or query."""
        if self.base_url is None:
            return f"model {self.model!r} at the default endpoint"
        url = urlsplit(self.base_url)
        return f"model {self.model!r} at {url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"


class ModelClient:
    """A client of one endpoint, whose connection pool is opened at the first request. Close it, or use `async with`.

    A client that is never closed can block the requests of the next client in the same event loop.
    """

    def __init__(self, settings: ModelSettings) -> None:
        self.settings = settings
        self._openai: AsyncOpenAI | None = None
        self._instructors: dict[Mode, AsyncInstructor] = {}
        self._mode: Mode | None = None if settings.mode == "auto" else settings.mode
        self._choosing_mode = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. A later request opens new ones."""
        client, self._openai, self._instructors = self._openai, None, {}
        if client is not None:
            await client.close()

    async def ask(
        self, messages: Sequence[Message], response_model: type[T], *, purpose: str = "extraction"
    ) -> tuple[T, Usage]:
        """Return the model's answer as a `response_model`, and the usage.

        `messages` are dicts with `role` and `content`, and are sent unchanged. `Usage.calls` counts all HTTP requests,
        including retries, repeated questions and trials of modes. Tokens that the endpoint does not report count as 0.
        The meter records the cost under `purpose`. It may refuse the request with an error of its own.

        Raises a subclass of `ExtractionError`. Its message names the model, its address and what to do next; its
        `usage` is what the request cost.
        """
        import openai  # noqa: F401 - Loading it takes seconds, which do not belong to the measured request.

        request = self.planned_request(messages, response_model, purpose)
        async with charging_to_current_meter(request) as bill:
            tally = RequestTally()
            with counting_requests(tally):
                outcome = await self._answer_or_error(messages, response_model, request.completion_limit or None)
            tally.fill_in(bill, request, outcome)
        # Raised here and not in an `except` block: the original exception holds whole prompts and would be printed.
        if isinstance(outcome, ExtractionError):
            outcome.usage = tally.usage
            raise outcome
        return outcome, tally.usage

    def planned_request(
        self, messages: Sequence[Message], response_model: type[BaseModel], purpose: str
    ) -> ModelRequest:
        """Return a description of the request that `ask` would send. Its prompt is estimated rather too high."""
        text = sum(tokens_by_byte_size(text) for message in messages for text in message.values())
        schema = schema_tokens(response_model, 2 if self.settings.mode == "json" else None) + TOKENS_OF_SHAPE
        meter = current_meter()
        limit = self.settings.max_completion_tokens or (meter.completion_limit if meter else None) or 0
        prompt_tokens = text + schema + TOKENS_PER_MESSAGE * len(messages)
        return ModelRequest(self.settings.model, purpose, prompt_tokens, limit, answers=REASKS + 1)

    async def _answer_or_error(
        self, messages: Sequence[Message], response_model: type[T], limit: int | None
    ) -> T | ExtractionError:
        """Ask in the chosen mode, and return the answer, or the error of choosing the mode or of asking."""
        from openai import OpenAIError

        try:
            mode = await self._chosen_mode()
        except OpenAIError as error:  # without a key, even opening the connection fails
            return translated_error(error, self.settings.place)
        if isinstance(mode, ExtractionError):
            return mode
        return await self._request(messages, response_model, mode, limit)

    async def probe(self) -> dict[Mode, ExtractionError | None]:
        """Ask a tiny question in every mode. Return the error of each mode, or None for a mode that works.

        With mode "auto" the first mode that works is used from now on, and saved in the `modes_file`.
        """
        with counting_requests(RequestTally()):
            errors = {mode: await self._try_mode(mode) for mode in MODES}
        working_modes = [mode for mode, error in errors.items() if error is None]
        if working_modes and self.settings.mode == "auto":
            self._use_mode(working_modes[0])
        return errors

    async def _chosen_mode(self) -> Mode | ExtractionError:
        """Return the mode in which to ask. With "auto" it is the saved mode, else the first one that works.

        If no mode works, return the error of the first mode.
        """
        async with self._choosing_mode:
            if self._mode is None and self.settings.modes_file is not None:
                self._mode = saved_mode(self.settings.modes_file, self._place_with_address())
            if self._mode is not None:
                return self._mode
            errors: list[ExtractionError] = []
            for mode in MODES:
                error = await self._try_mode(mode)
                if error is None:
                    self._use_mode(mode)
                    return mode
                # If the endpoint is down or refuses the key, no other mode would work.
                is_refused = isinstance(error, EndpointMisconfigured) and error.status in (None, 401, 403)
                if is_refused or isinstance(error, EndpointUnavailable):
                    return error
                errors.append(error)
            return errors[0]

    async def _try_mode(self, mode: Mode) -> ExtractionError | None:
        answer = await self._request(PROBE, Probe, mode, None, reasks=0)
        return answer if isinstance(answer, ExtractionError) else None

    def _use_mode(self, mode: Mode) -> None:
        self._mode = mode
        if self.settings.modes_file is not None:
            save_mode(self.settings.modes_file, self._place_with_address(), mode)

    def _place_with_address(self) -> str:
        """Return the model and the address of its endpoint, also if the environment gives the address."""
        return replace(self.settings, base_url=str(self._connection().base_url)).place

    async def _request(
        self,
        messages: Sequence[Message],
        response_model: type[T],
        mode: Mode,
        limit: int | None,
        *,
        reasks: int = REASKS,
    ) -> T | ExtractionError:
        from instructor.core import InstructorError
        from openai import OpenAIError

        limits: dict[str, Any] = {} if limit is None else {"max_completion_tokens": limit}
        plain_messages: list[Any] = [dict(message) for message in messages]
        try:
            answer, completion = await self._instructor(mode).create_with_completion(
                # Never `context=`: it would render every message as a template, users' words included.
                messages=plain_messages,
                response_model=stand_in_class(response_model),
                max_retries=reasks,
                model=self.settings.model,
                **limits,
            )
        except (InstructorError, OpenAIError, AttributeError) as error:
            failure = self._request_error(error)
            if failure is None:
                raise
            return failure
        # An answer that a content filter has shortened may still fit the schema.
        return refusal_error(self.settings.place) if is_refusal(completion) else answer

    def _request_error(self, error: Exception) -> ExtractionError | None:
        """Return the error to raise for a failed request, or None if the error is a fault of a program."""
        from openai import APITimeoutError

        tally = current_tally()
        if tally is not None and tally.is_web_page:
            return EndpointMisconfigured(f"{self.settings.place}: this is a web page; is /v1 missing in the base URL?")
        if isinstance(error, AttributeError):
            return None
        if tally is not None:
            tally.is_timeout = isinstance(error.__cause__ or error, APITimeoutError)
        return translated_error(error, self.settings.place)

    def _instructor(self, mode: Mode) -> AsyncInstructor:
        if mode not in self._instructors:
            import instructor

            modes = {"json_schema": instructor.Mode.JSON_SCHEMA, "tools": instructor.Mode.TOOLS}
            opened = instructor.from_openai(self._connection(), mode=modes.get(mode, instructor.Mode.JSON))
            opened.on("completion:response", _on_completion)
            self._instructors[mode] = opened
            _silence_instructor()
        return self._instructors[mode]

    def _connection(self) -> AsyncOpenAI:
        if self._openai is None:
            from openai import DefaultAsyncHttpxClient

            http_client = DefaultAsyncHttpxClient(
                event_hooks={"request": [count_sent_request], "response": [count_received_response]}
            )
            self._openai = open_connection(self.settings, http_client)
        return self._openai


def open_connection(settings: ModelSettings, http_client: DefaultAsyncHttpxClient | None = None) -> AsyncOpenAI:
    """Return a client of the openai package for the endpoint."""
    from openai import AsyncOpenAI

    # Without a key the openai package reads one from the environment, which is meant for its own endpoint. Any other
    # endpoint gets only the key of the settings, or the placeholder "none".
    key = settings.api_key or (None if settings.base_url is None else "none")
    return AsyncOpenAI(
        api_key=key,
        base_url=settings.base_url,
        timeout=settings.timeout_s,
        max_retries=settings.max_retries,
        http_client=http_client,
    )


def _on_completion(completion: object) -> None:
    """Count the usage of a completion and clean its text, before instructor reads it and changes the usage in place."""
    if tally := current_tally():
        tally.add_completion(completion)
    clean_completion(completion)


def _may_be_logged(record: logging.LogRecord) -> bool:
    return record.levelno <= logging.DEBUG or current_tally() is None


def _silence_instructor() -> None:
    """Drop instructor's log records above DEBUG about our requests, because they quote whole prompts and answers.

    A filter on a parent logger does not see the records of its children, so each logger gets the filter. Requests that
    the application itself makes with instructor are still logged.
    """
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "instructor":
            logging.getLogger(name).addFilter(_may_be_logged)
