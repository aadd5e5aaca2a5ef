"""What can go wrong between a saved state and grounded candidates, one leaf for each reaction of the caller."""

from __future__ import annotations

from afterword.errors import AfterwordError
from afterword.extractors.extractor import Usage


class ReadError(AfterwordError):
    """A saved state cannot be read; the file is left alone and the session is not marked done."""


class StateBroken(ReadError):
    """The file is no JSON, is cut, or holds values that no reader can take."""


class StateTooLarge(ReadError):
    """The file is larger or nested deeper than the limits; split it, or raise the limit."""


class LayoutUnknown(ReadError):
    """The JSON is sound, but nothing in it looks like a saved conversation."""


class ExtractionError(AfterwordError):
    """Extraction did not give an answer; the session stays queued with the reason.

    `usage` is what was spent all the same: requests, and the tokens of answers of no use as far as the endpoint told.
    """

    def __init__(self, message: str, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.usage = usage or Usage()


class AnswerInvalid(ExtractionError):
    """The model's answer never fitted the schema."""


class AnswerCut(ExtractionError):
    """The window was too long for the model, or its answer was; half of it is tried next."""


class AnswerRefused(ExtractionError):
    """The model declined to answer."""


class EndpointUnavailable(ExtractionError):
    """The endpoint did not answer: connection, timeout, 429 or 5xx after its retries."""


class EndpointMisconfigured(ExtractionError):
    """The endpoint refuses the request as such: key, model name or address is wrong.

    `status` is the HTTP status, None where no request was made at all.
    """

    def __init__(self, message: str, usage: Usage | None = None, *, status: int | None = None) -> None:
        super().__init__(message, usage)
        self.status = status
