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
STYLES = ("pico.min.css", "pages.css")
"""The parts of `styles.css`, which a page loads with one request."""
YEAR_S = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class _StaticFile:
    content: bytes
    compressed: bytes
    version: str
    media_type: str


@cache
def static_files() -> dict[str, _StaticFile]:
    """Return the files of the pages by name."""
    folder = files(__package__) / "static"
    contents = {path.name: path.read_bytes() for path in folder.iterdir()}
    contents["styles.css"] = b"\n".join(contents[name] for name in STYLES)
    endings = {name: name.rpartition(".")[2] for name in contents}
    return {name: _static_file(contents[name], MEDIA_TYPES[end]) for name, end in endings.items() if end in MEDIA_TYPES}


def _static_file(content: bytes, media_type: str) -> _StaticFile:
    version = hashlib.sha256(content).hexdigest()[:16]
    return _StaticFile(content, gzip.compress(content, mtime=0), version, media_type)


def versioned(name: str) -> str:
    """Return the name of a file with its version, which changes with the content: a browser asks for it once."""
    return f"{name}?v={static_files()[name].version}"


async def send_static(request: Request) -> Response:
    """Return a file of the pages. Everybody may read it. Raises `Refused`."""
    file = static_files().get(request.path_params["name"])
    if file is None:
        raise Refused(404, "there is no such file")
    tag = f'"{file.version}"'
    is_for_good = request.query_params.get("v") == file.version
    lifetime = f"public, max-age={YEAR_S}, immutable" if is_for_good else "public, max-age=300"
    headers = {"ETag": tag, "Cache-Control": lifetime, "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.compressed, media_type=file.media_type, headers={**headers, "Content-Encoding": "gzip"})
    return Response(file.content, media_type=file.media_type, headers=headers)
