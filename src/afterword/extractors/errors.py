"""Errors of reading saved states and of asking models. Each class tells the caller what to do next."""

from __future__ import annotations

from afterword.errors import AfterwordError
from afterword.extractors.extractor import Usage


class ReadError(AfterwordError):
    """A saved state cannot be read. Correct the file, and run the session again: it was not marked as done."""


class StateBroken(ReadError):
    """The file is not JSON, is truncated, or holds values that no reader accepts. Save the state again."""


class StateTooLarge(ReadError):
    """The file is larger, or its JSON is nested deeper, than the limits allow. Split it."""


class LayoutUnknown(ReadError):
    """The JSON is valid, but nothing in it looks like a saved conversation. Pass a saved state of an agent or team."""


class ExtractionError(AfterwordError):
    """The extractor or judge gave no answer. The session stays queued with the reason, and can be run again.

    `usage` is what the failed attempt cost: requests, and the tokens of unusable answers if the endpoint reported them.
    """

    def __init__(self, message: str, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.usage: Usage = usage or Usage()


class AnswerInvalid(ExtractionError):
    """No answer of the model fits the schema. Try another mode or a more capable model."""


class AnswerCut(ExtractionError):
    """The window or the answer was too long for the model. The window is then split and tried again in halves."""


class AnswerRefused(ExtractionError):
    """The model declined to answer. Look at the session, or try another model."""


class EndpointUnavailable(ExtractionError):
    """The endpoint did not answer after all retries: connection error, timeout, 429 or 5xx. Try again later."""


class EndpointMisconfigured(ExtractionError):
    """The endpoint refuses every request. Correct the key, the model name or the address.

    `status` is the HTTP status, or None if no request was made.
    """

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
