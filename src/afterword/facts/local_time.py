"""Instants with the UTC offset of the speaker, from whose local day "tomorrow" and the like are counted. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

LARGEST_OFFSET_S = 24 * 3600 - 1
_fixed_zone = lru_cache(maxsize=256)(timezone)


def read_zone(name: str) -> tzinfo:
    """Return a time zone by its IANA name. Raises `ValueError` for an unknown name."""
    if name == "UTC":
        return UTC  # also on a system without time zone data
    try:
        return ZoneInfo(name)
    except (LookupError, OSError, ValueError):
        raise ValueError(f"{name!r} is no time zone; write UTC or for example Europe/Vienna") from None


def at_speaker_offset(at: datetime, fallback_zone: tzinfo) -> datetime:
    """Return an instant with the UTC offset of the speaker.

    An offset other than zero is kept. A time without an offset is a local time of `fallback_zone`. A time in UTC gets
    the offset of `fallback_zone`, because programs write times in UTC wherever the speaker is.
    """
    if at.tzinfo is None:
        at = at.replace(tzinfo=fallback_zone)
    try:
        return at_offset(at, offset_seconds(at) or offset_seconds(at.astimezone(fallback_zone)))
    except OverflowError:
        return at.astimezone(UTC)


def offset_seconds(at: datetime | None) -> int | None:
    """Return how many seconds the local time of an instant is ahead of UTC, None for UTC."""
    offset = at.utcoffset() if at is not None else None
    return int(offset.total_seconds()) or None if offset else None


def at_offset(at: datetime, offset_s: int | None) -> datetime:
    """Return an instant with this offset, or in UTC if `offset_s` is None or the local time is outside the calendar."""
    if offset_s is None or not -LARGEST_OFFSET_S <= offset_s <= LARGEST_OFFSET_S:
        return at if at.tzinfo is UTC else at.astimezone(UTC)
    try:
        return at.astimezone(_fixed_zone(timedelta(seconds=offset_s)))
    except OverflowError:
        return at.astimezone(UTC)
