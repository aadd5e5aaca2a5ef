"""Memories that other libraries have exported: mem0, LangMem, AutoGen's ListMemory. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from afterword.pipeline.errors import SourceInvalid


class Origin(StrEnum):
    """Which library has written an export."""

    MEM0 = "mem0"
    LANGMEM = "langmem"
    LISTMEMORY = "listmemory"


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory of another library: its text, its id there, and when it was written last (aware), where it says so."""

    text: str
    id: str
    at: datetime | None


def memories(kind: Origin, exported: Any) -> list[Memory]:
    """Return the memories of a parsed export, those without words left out. Raises `SourceInvalid` where it is none,
    or holds the memories of several people.

    mem0: what `get_all` returns. LangMem: a list of items of its store (`key`, `value`, `created_at`, `updated_at`).
    ListMemory: what `dump_component` returns, or its `config`, or the list of its contents.
    """
    readers = {Origin.MEM0: _mem0, Origin.LANGMEM: _langmem, Origin.LISTMEMORY: _listmemory}
    found = list(readers[kind](exported))
    if not found:
        raise SourceInvalid(f"the file holds no memories of {kind}: it must be {_FORMS[kind]}, as JSON")
    return [one for one in found if one.text]


_FORMS = {
    Origin.MEM0: 'what get_all returns, {"results": [{"id": ..., "memory": ...}]}',
    Origin.LANGMEM: 'a list of items of the store, [{"namespace": [...], "key": ..., "value": {...}}]',
    Origin.LISTMEMORY: 'what dump_component returns, {"config": {"memory_contents": [{"content": ...}]}}',
}


def _mem0(exported: Any) -> Iterable[Memory]:
    items = exported.get("results", exported.get("memories", [])) if isinstance(exported, Mapping) else exported
    users = {str(item["user_id"]) for item in _mappings(items) if item.get("user_id")}
    if len(users) > 1:
        raise SourceInvalid(f"the file holds the memories of {len(users)} users; export each with get_all(user_id=...)")
    for place, item in enumerate(_mappings(items)):
        text = item.get("memory") or item.get("data") or item.get("text") or ""
        yield Memory(_line(text), str(item.get("id", place)), _written(item))


def _langmem(exported: Any) -> Iterable[Memory]:
    items = exported.get("items", []) if isinstance(exported, Mapping) else exported
    for place, item in enumerate(_mappings(items)):
        name = "/".join([*map(str, item.get("namespace") or item.get("prefix") or ()), str(item.get("key", place))])
        yield Memory(_line(_content(item.get("value"))), name, _written(item))


def _listmemory(exported: Any) -> Iterable[Memory]:
    config = exported.get("config", exported) if isinstance(exported, Mapping) else exported
    items = config.get("memory_contents", []) if isinstance(config, Mapping) else config
    for place, item in enumerate(_mappings(items)):
        if str(item.get("mime_type") or "text/plain").partition("/")[0] not in ("text", "application"):
            continue  # a picture has no words
        metadata = item.get("metadata") if isinstance(item.get("metadata"), Mapping) else {}
        yield Memory(_line(_content(item.get("content"))), str(place), _written(metadata or {}))


def _mappings(items: Any) -> list[Mapping[str, Any]]:
    return [one for one in items if isinstance(one, Mapping)] if isinstance(items, list) else []


def _content(value: Any) -> str:
    """Return the words of a value: those of its `content`, else its fields, one after the other."""
    if isinstance(value, Mapping):
        if "content" in value:
            return _content(value["content"])
        told = ((name, _content(inner)) for name, inner in value.items() if name != "kind")
        return "; ".join(f"{name}: {text}" for name, text in told if text)
    if isinstance(value, list):
        return ", ".join(text for inner in value if (text := _content(inner)))
    return "" if value is None else str(value)


def _line(text: Any) -> str:
    return " ".join(str(text).split())


def _written(item: Mapping[str, Any]) -> datetime | None:
    """Return when an item was written last; the text is as of then."""
    times = (_instant(item.get(name)) for name in ("updated_at", "created_at", "timestamp"))
    return next((at for at in times if at is not None), None)


def _instant(value: Any) -> datetime | None:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None
    if found is None:
        return None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
