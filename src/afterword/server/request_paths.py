"""Decode the path of a request in two steps, so that an id in it may contain a slash, and encode it again."""

from __future__ import annotations

import re
from contextlib import suppress
from urllib.parse import quote, unquote_to_bytes

from starlette.requests import Request
from starlette.types import Scope


def routable_path(scope: Scope) -> str:
    """Return the decoded path, in which encoded slashes and percent signs stay encoded.

    So an id may contain a slash, and the router still splits the path correctly. `decode_path_part` decodes the rest.
    """
    raw = scope.get("raw_path")
    if not raw:
        return str(scope["path"])
    still_encoded = re.sub(rb"%(2[fF]|25)", rb"%25\1", raw.split(b"?", 1)[0])
    with suppress(UnicodeDecodeError):
        return unquote_to_bytes(still_encoded).decode("utf-8")
    return "/not-utf-8"


def decode_path_part(text: str) -> str:
    """Decode the slashes and percent signs that `routable_path` leaves encoded in a part of a path."""
    return text.replace("%2F", "/").replace("%2f", "/").replace("%25", "%")


def encoded_path(request: Request) -> str:
    """Return the path of a request as its client encoded it."""
    raw: bytes = request.scope["raw_path"]
    return quote(raw.partition(b"?")[0], safe="/%!$&'()*+,;=:@")
