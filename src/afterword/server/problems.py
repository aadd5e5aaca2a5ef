"""Error responses as problem details (RFC 9457).

No error response contains another caller's words, or the URL of the database.
"""

from __future__ import annotations

import http
import re
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
NO_DELETION = "a fact is not deleted by its address: POST .../withdraw ends it, POST .../forget erases it for good"
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
"""The HTTP status of an error by its class. Of all others, usage errors have status 400, and the rest has 503."""

_FACT_PATH = re.compile(r"/facts/[^/]+/?$")


class Refused(HTTPException):
    """Refuses a request. The caller sees `detail`, which says why and what to do."""


def http_status_of(error: AfterwordError) -> int:
    """Return the HTTP status of an error."""
    known = next((status for kind, status in STATUSES if isinstance(error, kind)), None)
    return known or (400 if error.is_usage else 503)


def problem_response(
    status: int, detail: str, *, headers: Mapping[str, str] | None = None, **members: Any
) -> JSONResponse:
    """Return an error response. `members` are further fields of its JSON."""
    content = {"type": "about:blank", "title": http.HTTPStatus(status).phrase, "status": status, "detail": detail}
    return JSONResponse({**content, **members}, status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def add_error_handlers(app: FastAPI) -> None:
    """Make the application answer errors of afterword and HTTP, and invalid requests, with problem details."""
    for kind in (AfterwordError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, answer_error)


async def answer_error(request: Request, error: Exception) -> JSONResponse:
    """Return the response to an error. An error that is a fault of the program is raised again."""
    match error:
        case HTTPException(status_code=405) if request.method == "DELETE" and _FACT_PATH.search(request.url.path):
            return problem_response(405, NO_DELETION, headers=error.headers)
        case HTTPException():
            return problem_response(error.status_code, error.detail, headers=error.headers)
        case RequestValidationError():
            # The invalid input is left out, because the caller may log the response.
            faults = [{"field": _field_name(fault), "message": fault["msg"]} for fault in error.errors()]
            return problem_response(422, "the request is invalid; see errors", errors=faults)
        case AfterwordError():
            status = http_status_of(error)
            headers = {"WWW-Authenticate": 'Bearer error="invalid_token"'} if status == 401 else {}
            if status == 503 or isinstance(error, RequestPending):
                headers["Retry-After"] = RETRY_AFTER_S
            # The message of a database error contains the URL of the database.
            return problem_response(status, UNAVAILABLE if status == 503 else str(error), headers=headers)
    raise error


def _field_name(fault: Mapping[str, Any]) -> str:
    """Return the name of the invalid field, or "body" if the body is not JSON."""
    return "body" if fault["type"] == "json_invalid" else ".".join(map(str, fault["loc"]))
