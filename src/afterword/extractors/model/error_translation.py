"""Translate exceptions of openai and instructor into the errors of `extractors.errors`, without any of their text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from afterword.extractors.errors import (
    AnswerCut,
    AnswerInvalid,
    AnswerRefused,
    EndpointMisconfigured,
    EndpointUnavailable,
    ExtractionError,
)

if TYPE_CHECKING:
    from openai import APIStatusError

TRANSIENT_STATUSES = frozenset({408, 409, 429})
WINDOW_TOO_LONG = frozenset({"context_length_exceeded", "string_above_max_length"})


def translated_error(error: Exception, place: str) -> ExtractionError:
    """Return our error for an exception of openai or instructor. `place` is the model and its address."""
    from instructor.core import IncompleteOutputException
    from openai import APIConnectionError, APIStatusError, APITimeoutError, OpenAIError

    cause = error.__cause__ if isinstance(error.__cause__, OpenAIError) else error
    if isinstance(error, IncompleteOutputException):
        return AnswerCut(
            f"{place}: the answer was cut at its length limit; take a model with more room, or ask for less"
        )
    if isinstance(cause, APIStatusError):
        return _status_error(cause, place)
    if isinstance(cause, APITimeoutError):
        return EndpointUnavailable(f"{place}: no answer in time; the session is tried again, or raise the timeout")
    if isinstance(cause, APIConnectionError):
        return EndpointUnavailable(f"{place}: no connection; check that the endpoint runs and can be reached")
    if isinstance(cause, OpenAIError):
        return EndpointMisconfigured(
            f"{place}: no request could be made; set an API key, or a base URL that needs none"
        )
    return _answer_error(error, place)


def refusal_error(place: str) -> AnswerRefused:
    """Return the error for an answer that the model refused to give."""
    return AnswerRefused(f"{place}: the model declined to answer; look at the session, or try another model")


def is_refusal(completion: Any) -> bool:
    """Return whether the model refused to answer, or a content filter stopped it."""
    return any(
        getattr(getattr(choice, "message", None), "refusal", None)
        or getattr(choice, "finish_reason", None) == "content_filter"
        for choice in getattr(completion, "choices", None) or []
    )


def _status_error(error: APIStatusError, place: str) -> ExtractionError:
    status = error.status_code
    if status == 413 or str(error.code) in WINDOW_TOO_LONG:
        return AnswerCut(
            f"{place}: HTTP {status}, the request is too long; take a model with more room, or ask for less"
        )
    if status in TRANSIENT_STATUSES or status >= 500:
        return EndpointUnavailable(f"{place}: HTTP {status} after all retries; the session is tried again later")
    next_step = {
        401: "check the API key",
        403: "check what the API key may use",
        404: "check the model's name and the base URL",
    }.get(status, "check the model's name, and with `afterword doctor --probe` which mode the endpoint knows")
    return EndpointMisconfigured(f"{place}: HTTP {status}; {next_step}", status=status)


def _answer_error(error: Exception, place: str) -> ExtractionError:
    # With forced tools instructor raises an AssertionError at a refusal, before it stores the completion.
    if isinstance(error.__cause__, AssertionError) or is_refusal(getattr(error, "last_completion", None)):
        return refusal_error(place)
    attempts = getattr(error, "n_attempts", 1)
    return AnswerInvalid(
        f"{place}: no answer fitted the schema in {attempts} attempts; try another mode or a more capable model"
    )
