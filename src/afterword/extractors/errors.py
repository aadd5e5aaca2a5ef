"""Errors between a saved state and grounded candidates: one class for each reaction of the caller."""

from __future__ import annotations

from afterword.errors import AfterwordError
from afterword.extractors.extractor import Usage


class ReadError(AfterwordError):
    """A saved state cannot be read. Correct the file: it is not changed, and the session is not marked done."""


class StateBroken(ReadError):
    """The file is not JSON, is cut, or holds values that no reader accepts. Save the state again."""


class StateTooLarge(ReadError):
    """The file is larger or nested deeper than the limits allow; split it."""


class LayoutUnknown(ReadError):
    """The JSON is valid, but nothing in it looks like a saved conversation. Pass a saved state of an agent or team."""


class ExtractionError(AfterwordError):
    """The extractor or judge gave no answer. The session stays queued with the reason, and can be run again.

    `usage` is what was spent all the same: requests, and the tokens of unusable answers if the endpoint reported them.
    """

    def __init__(self, message: str, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.usage: Usage = usage or Usage()


class AnswerInvalid(ExtractionError):
    """No answer of the model fitted the schema. Try another mode or a more capable model."""


class AnswerCut(ExtractionError):
    """The window or the answer was too long for the model. Half of the window is tried next."""


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
