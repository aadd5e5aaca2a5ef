"""How a page addresses its reader: language, time zone, and whether single keys are shortcuts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from urllib.parse import unquote
from zoneinfo import ZoneInfo

from starlette.requests import Request

from afterword.server.pages.texts import LANGUAGES, catalogue, preferred_language

LANGUAGE_COOKIE, ZONE_COOKIE, KEYS_COOKIE = "afterword_language", "afterword_zone", "afterword_keys"
LONGEST_ZONE_NAME = 64


@dataclass(frozen=True, slots=True)
class Reader:
    """The reader of a page."""

    language: str
    zone_name: str
    has_shortcuts: bool

    @classmethod
    def of(cls, request: Request) -> Reader:
        """Return the reader that sent a request."""
        language = request.cookies.get(LANGUAGE_COOKIE, "")
        if language not in LANGUAGES:
            language = preferred_language(request.headers.get("accept-language", ""))
        zone_name = unquote(request.cookies.get(ZONE_COOKIE, "UTC"))
        known = zone_name if zone_by_name(zone_name) is not None else "UTC"
        return cls(language, known, request.cookies.get(KEYS_COOKIE) != "off")

    def text(self, key: str, **values: object) -> str:
        """Return a text of the catalogue in the reader's language. Raises `KeyError` for an unknown key."""
        text = catalogue(self.language)[key]
        return text.format(**values) if values else text

    def text_or(self, key: str, default: str) -> str:
        """Return a text of the catalogue, or `default` where it has none."""
        return catalogue(self.language).get(key, default)

    def instant(self, at: datetime) -> str:
        """Return an instant in the reader's zone."""
        return at.astimezone(zone_by_name(self.zone_name) or UTC).strftime(self.text("format.instant"))

    def local_day(self, at: datetime) -> str:
        """Return the day of an instant where it was said. The day that a statement names is the speaker's own."""
        return at.strftime(self.text("format.day"))


@lru_cache(maxsize=200)
def zone_by_name(name: str) -> tzinfo | None:
    """Return the time zone of a name, None if there is no such zone."""
    if not 0 < len(name) <= LONGEST_ZONE_NAME or not name.isascii():
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None
