"""Paths in which an id may hold a slash."""

from __future__ import annotations

import re
from contextlib import suppress
from urllib.parse import unquote_to_bytes

from starlette.types import Scope


def routable_path(scope: Scope) -> str:
    """Return the path with every segment decoded but for slashes and percent signs, so that an id may hold a slash.

    `path_part` decodes those.
    """
    raw = scope.get("raw_path")
    if not raw:
        return str(scope["path"])
    still_encoded = re.sub(rb"%(2[fF]|25)", rb"%25\1", raw.split(b"?", 1)[0])
    with suppress(UnicodeDecodeError):
        return unquote_to_bytes(still_encoded).decode("utf-8")
    return "/not-utf-8"


def path_part(text: str) -> str:
    """Return an id as it was meant, from a part of `routable_path`."""
    return text.replace("%2F", "/").replace("%2f", "/").replace("%25", "%")
