"""Style sheets and scripts, compressed once."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from afterword.server.problems import Refused

MEDIA_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "txt": "text/plain"}


@dataclass(frozen=True, slots=True)
class _StaticFile:
    content: bytes
    compressed: bytes
    tag: str
    media_type: str


@cache
def _static_files() -> dict[str, _StaticFile]:
    read = {}
    for path in (files(__package__) / "static").iterdir():
        media_type = MEDIA_TYPES.get(path.name.rpartition(".")[2])
        if media_type is not None:
            content = path.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
            read[path.name] = _StaticFile(content, gzip.compress(content, mtime=0), tag, media_type)
    return read


async def send_static(request: Request) -> Response:
    """Return a file of the pages. Everybody may read it. Raises `Refused`."""
    file = _static_files().get(request.path_params["name"])
    if file is None:
        raise Refused(404, "there is no such file")
    headers = {"ETag": file.tag, "Cache-Control": "public, max-age=300", "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.compressed, media_type=file.media_type, headers={**headers, "Content-Encoding": "gzip"})
    return Response(file.content, media_type=file.media_type, headers=headers)
