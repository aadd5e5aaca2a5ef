"""Errors as problem details (RFC 9457). No answer holds another caller's words, or the address of the store."""

from __future__ import annotations

import http
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from afterword.client import values
from afterword.errors import (
    AfterwordError,
    Ambiguous,
    KeyInvalid,
    NotFound,
    Overtaken,
    RequestPending,
    RequestReused,
    StateConflict,
)

MEDIA_TYPE = "application/problem+json"
UNAVAILABLE = "the service cannot do this now; try again later"
RETRY_AFTER_S = "1"

STATUSES: tuple[tuple[type[AfterwordError], int], ...] = (
    (KeyInvalid, 401),
    (RequestReused, 422),
    (RequestPending, 409),
    (NotFound, 404),
    (Ambiguous, 409),
    (StateConflict, 409),
    (values.ProposalOutdated, 409),
    (values.ReadError, 422),
    (Overtaken, 503),
)
"""The status of an error. Other errors of the request are 400, other errors 503."""


class Refused(Exception):
    """A request that is answered with a problem. `title` names the problem in a few words."""

    def __init__(self, status: int, detail: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})


def status_of(error: AfterwordError) -> int:
    """Return the HTTP status of an error."""
    known = next((status for kind, status in STATUSES if isinstance(error, kind)), None)
    return known or (400 if error.is_usage else 503)


def problem(status: int, detail: str, *, headers: Mapping[str, str] | None = None, **members: Any) -> JSONResponse:
    """Return the answer that tells of a problem."""
    content = {"type": "about:blank", "title": http.HTTPStatus(status).phrase, "status": status, "detail": detail}
    return JSONResponse({**content, **members}, status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def add_handlers(app: FastAPI) -> None:
    """Let the application answer every error with a problem."""
    for kind in (AfterwordError, Refused, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _answer_error)


async def _answer_error(_: Request, error: Exception) -> JSONResponse:
    match error:
        case Refused():
            return problem(error.status, error.detail, headers=error.headers)
        case HTTPException():
            return problem(error.status_code, error.detail, headers=error.headers)
        case RequestValidationError():
            # Without the input: an answer may be logged by whoever asked.
            faults = [{"field": ".".join(map(str, fault["loc"])), "message": fault["msg"]} for fault in error.errors()]
            return problem(422, "the request does not fit; see errors", errors=faults)
        case AfterwordError():
            status = status_of(error)
            headers = {"WWW-Authenticate": 'Bearer error="invalid_token"'} if status == 401 else {}
            if status == 503 or isinstance(error, RequestPending):
                headers["Retry-After"] = RETRY_AFTER_S
            # The message of a fault of the store names its address.
            return problem(status, UNAVAILABLE if status == 503 else str(error), headers=headers)
    raise error
