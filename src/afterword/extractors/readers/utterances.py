"""What the readers of all layouts have in common: one utterance, and the notes that are taken while reading."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from afterword.facts.transcripts import Role

Item = Mapping[str, Any]

IMAGE = "[image]"
ATTACHMENT = "[attachment]"
UNKNOWN_SPEAKER = "unknown"
MOST_REASONS = 50

_DATA_URL = re.compile(r"data:[\w.+-]{1,80}/[\w.+-]{1,80};base64,[A-Za-z0-9+/=_-]*")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{256,}={0,2}")
_PLAIN_NAME = re.compile(r"[\w.:$<>\[\], -]{1,60}")


class Utterance(NamedTuple):
    """Something that was said, before it is a turn. `role` None: the speaker's name will tell.

    `mark` names a tool call or result (by its call id), so that copies are found where they carry no source.
    """

    source: str
    text: str
    role: Role | None = None
    said_at: datetime | None = None
    message_id: str | None = None
    mark: str = ""


@dataclass(slots=True)
class Notes:
    """What is found out while reading: what was skipped and why, and which texts were injected memory."""

    skipped: Counter[str] = field(default_factory=Counter)
    injected: set[str] = field(default_factory=set)

    def skip(self, reason: str, count: int = 1) -> None:
        """Count something that was not read; beyond 50 reasons, the rest is counted together."""
        known = reason in self.skipped or len(self.skipped) < MOST_REASONS
        self.skipped[reason if known else "other reasons"] += count

    def skip_type(self, kind: object) -> None:
        """Count a message of a type that no reader knows."""
        named = isinstance(kind, str) and _PLAIN_NAME.fullmatch(kind)
        self.skip(f"unknown type {kind}" if named else "unknown type (unnamed)")


@dataclass(frozen=True, slots=True)
class Reading:
    """The utterances of one saved state in order; `agents` are surely no people, `outsiders` may be."""

    layout: str
    utterances: list[Utterance]
    agents: frozenset[str] = frozenset()
    outsiders: frozenset[str] = frozenset()


def items_of(value: object, notes: Notes) -> Iterable[Item]:
    """Return the objects of a list; what is no object is counted."""
    if not isinstance(value, list):
        if value is not None:
            notes.skip("unreadable message list")
        return
    for item in value:
        if isinstance(item, dict):
            yield item
        else:
            notes.skip("not a message")


def name_of(value: object) -> str:
    """Return a speaker's name, or `unknown` where there is none."""
    return value if isinstance(value, str) and value.strip() else UNKNOWN_SPEAKER


def id_of(item: Item) -> str | None:
    """Return a message's id where it has one."""
    value = item.get("id")
    return value if isinstance(value, str) and value else None


def instant_of(value: object, notes: Notes) -> datetime | None:
    """Return an instant as aware UTC, None where there is none; one without a zone is UTC, as AutoGen writes it."""
    if value is None:
        return None
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(value)  # type: ignore[arg-type]  # else TypeError
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        notes.skip("unreadable time")
        return None


def text_of(content: object, notes: Notes) -> str:
    """Return the words of a message's content; images become `[image]`, never their bytes."""
    if isinstance(content, str):
        return without_data(content)
    if isinstance(content, list):
        return "\n".join(_part_text(part, notes) for part in content)
    if isinstance(content, dict):
        return without_data(compact(content))
    if content is not None:
        notes.skip("unreadable content")
    return ""


def without_data(text: str) -> str:
    """Return the text with data URLs replaced by `[image]`."""
    return _DATA_URL.sub(IMAGE, text) if ";base64," in text else text


def without_base64(text: str) -> str:
    """Return the text with long runs of base64 replaced; for text that no person wrote."""
    return _BASE64.sub("[data]", without_data(text)) if len(text) >= 256 else text


def compact(value: object) -> str:
    """Return the value as JSON without white space, as pydantic writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def call_text(name: object, arguments: object) -> str:
    """Return a tool call as one short line."""
    given = arguments if isinstance(arguments, str) else compact(arguments)
    return f"call {name_of(name)}({given})"


def _part_text(part: object, notes: Notes) -> str:
    if isinstance(part, str):
        return IMAGE if _BASE64.fullmatch(part.strip()) else without_data(part)
    if not isinstance(part, dict):
        notes.skip("unreadable content")
        return ""
    for name in ("text", "refusal", "content"):
        if isinstance(part.get(name), str):
            return without_data(part[name])
    kind = part.get("type")
    pictured = "data" in part or "image_url" in part or (isinstance(kind, str) and "image" in kind)
    return IMAGE if pictured else ATTACHMENT
