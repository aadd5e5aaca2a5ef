"""Shared by the readers of all layouts: utterances, names of people, a log of skipped parts, and parsing of parts."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple

from afterword.facts.local_time import at_speaker_offset
from afterword.facts.transcripts import Role, is_generic_name
from afterword.normal_form import composed
from afterword.privacy.blanking import letters_and_digits

JsonObject = Mapping[str, Any]

IMAGE = "[image]"
ATTACHMENT = "[attachment]"
UNKNOWN_SPEAKER = "unknown"
MOST_REASONS = 50

_DATA_URL = re.compile(r"data:[\w.+-]{1,80}/[\w.+-]{1,80};base64,[A-Za-z0-9+/=_-]*")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{256,}={0,2}")
_PLAIN_NAME = re.compile(r"[\w.:$<>\[\], -]{1,60}")


class Utterance(NamedTuple):
    """Something that was said, before it becomes a turn. If `role` is None, the speaker's name decides the role.

    `mark` identifies a tool call or result by its call id, so that copies are recognised whatever speaker they name.
    """

    source: str
    text: str
    role: Role | None = None
    said_at: datetime | None = None
    message_id: str | None = None
    mark: str = ""


@dataclass(slots=True)
class ReadingLog:
    """What was skipped while reading, with the reason, and which texts were injected memory.

    `zone` is the time zone of times without an offset.
    """

    skipped: Counter[str] = field(default_factory=Counter)
    injected: set[str] = field(default_factory=set)
    zone: tzinfo = UTC

    def skip(self, reason: str, count: int = 1) -> None:
        """Count something that was not read. After 50 reasons, further reasons are counted together."""
        known = reason in self.skipped or len(self.skipped) < MOST_REASONS
        self.skipped[reason if known else "other reasons"] += count

    def skip_type(self, kind: object) -> None:
        """Count a message of a type that no reader knows."""
        is_plain = isinstance(kind, str) and _PLAIN_NAME.fullmatch(kind)
        self.skip(f"unknown type {kind}" if is_plain else "unknown type (unnamed)")


@dataclass(frozen=True, slots=True)
class SavedConversation:
    """The utterances of one saved state in order.

    `agents` are the names of speakers who are surely not people, `outsiders` those of speakers who may be people.
    `unclear_speakers` are members of a team who may be a person's `UserProxyAgent` or a code executor, since both are
    saved alike, and unknown speakers outside of a team's state. They are taken for agents, and the log says so, unless
    they have the name of the user whose memory it is.
    """

    layout: str
    utterances: list[Utterance]
    agents: frozenset[str] = frozenset()
    outsiders: frozenset[str] = frozenset()
    unclear_speakers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class People:
    """The names of people: generic ones, and `names` from a manifest, the recorder or the caller.

    `user` is the id of the user whose memory it is, reduced to letters and digits.
    """

    names: frozenset[str] = frozenset()
    user: str = ""

    @classmethod
    def named(cls, humans: Collection[str] = (), user: str | None = None) -> People:
        """Return the people that the caller names. Letter case does not matter."""
        return cls(frozenset(composed(name).casefold() for name in humans), letters_and_digits(user or ""))

    def is_known(self, name: str | None) -> bool:
        """Whether the name is known to be a person's: the caller listed it, or it is a generic one."""
        return name is not None and (self.is_listed_by_caller(name) or is_generic_name(name))

    def is_listed_by_caller(self, name: str) -> bool:
        """Whether the caller listed the name as a person's."""
        return composed(name).casefold() in self.names

    def is_user(self, name: str) -> bool:
        """Whether the whole name is that of the user whose memory it is. A part of the name may also name a program."""
        return bool(self.user) and letters_and_digits(name) == self.user


def objects_in(value: object, log: ReadingLog) -> Iterable[JsonObject]:
    """Yield the objects of a list. Anything else in it is counted as skipped."""
    if not isinstance(value, list):
        if value is not None:
            log.skip("unreadable message list")
        return
    for entry in value:
        if isinstance(entry, dict):
            yield entry
        else:
            log.skip("not a message")


def speaker_name(value: object) -> str:
    """Return a speaker's name, or `unknown` if there is none."""
    return value if isinstance(value, str) and value.strip() else UNKNOWN_SPEAKER


def speaker_name_in(message: JsonObject) -> str | None:
    """Return the name that a message gives its speaker, or None."""
    name = message.get("name")
    return name if isinstance(name, str) and name.strip() else None


def id_in(message: JsonObject) -> str | None:
    """Return the id of a message, or None."""
    value = message.get("id")
    return value if isinstance(value, str) and value else None


def local_instant(value: object, log: ReadingLog) -> datetime | None:
    """Return a time with an offset, or None if it cannot be read. The log's zone gives the offset if there is none."""
    if value is None:
        return None
    with suppress(ValueError, OverflowError):
        if isinstance(value, str | datetime):
            local = at_speaker_offset(value if isinstance(value, datetime) else datetime.fromisoformat(value), log.zone)
            local.astimezone(UTC)  # a time that UTC does not have cannot be stored
            return local
    log.skip("unreadable time")
    return None


def message_text(content: object, log: ReadingLog) -> str:
    """Return the text of a message's content. Images become `[image]`."""
    if isinstance(content, str):
        return without_data_urls(content)
    if isinstance(content, list):
        return "\n".join(_part_text(part, log) for part in content)
    if isinstance(content, dict):
        return without_data_urls(compact_json(content))
    if content is not None:
        log.skip("unreadable content")
    return ""


def without_data_urls(text: str) -> str:
    """Return the text with data URLs replaced by `[image]`."""
    return _DATA_URL.sub(IMAGE, text) if ";base64," in text else text


def without_base64(text: str) -> str:
    """Return the text with long runs of base64 replaced. Use it only for text that no person wrote."""
    return _BASE64.sub("[data]", without_data_urls(text)) if len(text) >= 256 else text


def compact_json(value: object) -> str:
    """Return the value as JSON without white space, as pydantic writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def call_text(name: object, arguments: object) -> str:
    """Return a tool call as one short line."""
    written = arguments if isinstance(arguments, str) else compact_json(arguments)
    return without_base64(f"call {speaker_name(name)}({written})")


def output_text(content: object, log: ReadingLog) -> str:
    """Return the text of a tool's output, without long runs of base64."""
    return without_base64(message_text(content, log))


def call_or_result_mark(kind: str, call_id: object) -> str:
    """Return the `mark` of an utterance that is a tool call or result, or an empty text if that has no id."""
    return f"{kind} {call_id}" if isinstance(call_id, str) and call_id else ""


def _part_text(part: object, log: ReadingLog) -> str:
    if isinstance(part, str):
        return IMAGE if _BASE64.fullmatch(part.strip()) else without_data_urls(part)
    if not isinstance(part, dict):
        log.skip("unreadable content")
        return ""
    for name in ("text", "refusal", "content"):
        if isinstance(part.get(name), str):
            return without_data_urls(part[name])
    kind = part.get("type")
    is_image = "data" in part or "image_url" in part or (isinstance(kind, str) and "image" in kind)
    return IMAGE if is_image else ATTACHMENT
