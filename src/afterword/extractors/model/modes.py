"""How the shape of an answer is asked for, and which way an endpoint understands: tried once, then remembered."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Literal, get_args
from uuid import uuid4

from pydantic import BaseModel

from afterword import telemetry
from afterword.extractors.errors import EndpointMisconfigured, EndpointUnavailable, ExtractionError

Mode = Literal["json_schema", "tools", "json"]
MODES: tuple[Mode, ...] = get_args(Mode)
"""In the order in which they are tried: the strictest first."""

PROBE = (
    {"role": "system", "content": "Answer with JSON that fits the given schema."},
    {"role": "user", "content": "Note down one thing: on 3 May 2024 Ana planted an apple tree."},
)

_log = telemetry.logs(__name__)


class _Sort(StrEnum):
    PLANT = "plant"
    ANIMAL = "animal"


class _Noted(BaseModel):
    sort: _Sort
    name: str
    day: date | None = None


class Probe(BaseModel):
    """A tiny answer whose schema has what the real ones have: a list, a choice, a date, what may be left out."""

    noted: list[_Noted]


async def first_that_works(tried: Callable[[Mode], Awaitable[ExtractionError | None]]) -> Mode | ExtractionError:
    """Return the first mode in which the endpoint gave the answer, else why it gave none.

    An endpoint that is down, or refuses the key, says nothing about modes: then no other one is tried.
    """
    faults: list[ExtractionError] = []
    for mode in MODES:
        fault = await tried(mode)
        if fault is None:
            return mode
        if not is_about_mode(fault):
            return fault
        faults.append(fault)
    return faults[0]


def is_about_mode(fault: ExtractionError) -> bool:
    """Whether another mode may fare better."""
    if isinstance(fault, EndpointMisconfigured):
        return fault.status not in (None, 401, 403)
    return not isinstance(fault, EndpointUnavailable)


def remembered(path: Path, place: str) -> Mode | None:
    """Return the mode that was found for a model at an address, None where none was, or the file cannot be read."""
    mode = _kept(path).get(place)
    return next((one for one in MODES if one == mode), None)


def remember(path: Path, place: str, mode: Mode) -> bool:
    """Keep the mode that was found for a model at an address; return whether it could be kept."""
    draft = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps({**_kept(path), place: mode}, indent=1, sort_keys=True), encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        # A read-only home costs a probe for each process, nothing else.
        _log.info("the mode that was found is not kept (%s)", type(error).__name__)
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        return False
    return True


def _kept(path: Path) -> dict[str, object]:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}
