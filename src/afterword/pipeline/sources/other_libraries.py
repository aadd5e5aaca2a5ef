"""Converting the exported memories of other libraries. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from afterword.pipeline.errors import SourceInvalid


class ExportingLibrary(StrEnum):
    """The library that wrote an export."""

    MEM0 = "mem0"
    LANGMEM = "langmem"
    LISTMEMORY = "listmemory"
    CHROMADB = "chromadb"
    GRAPHITI = "graphiti"
    ZEP = "zep"


@dataclass(frozen=True, slots=True)
class ExportedMemory:
    """One memory of another library: its text, its id there, and the time of its last change if it is known.

    `valid_from` and `valid_to` say when it is true in the world, if the library knows that. All times are aware.
    """

    text: str
    id: str
    at: datetime | None
    valid_from: datetime | None = None
    valid_to: datetime | None = None


def read_export(kind: ExportingLibrary, exported: Any) -> list[ExportedMemory]:
    """Return the memories of a parsed export, without empty ones.

    Raises `SourceInvalid` if it is no export of this library, or contains the memories of several people.

    mem0: what `get_all` returns. LangMem: a list of items of its store (`key`, `value`, `created_at`, `updated_at`).
    ListMemory: what `dump_component` returns, or its `config`, or the list of its contents. ChromaDB: what
    `Collection.get` returns. Graphiti and Zep: a list of edges (`uuid`, `fact`, `valid_at`, `invalid_at`).
    """
    readers = {
        ExportingLibrary.MEM0: _mem0_memories,
        ExportingLibrary.LANGMEM: _langmem_memories,
        ExportingLibrary.LISTMEMORY: _listmemory_memories,
        ExportingLibrary.CHROMADB: _chromadb_memories,
        ExportingLibrary.GRAPHITI: _graph_memories,
        ExportingLibrary.ZEP: _graph_memories,
    }
    _check_single_owner(exported)
    exported_memories = list(readers[kind](exported))
    if not exported_memories:
        raise SourceInvalid(f"the file holds no memories of {kind}: it must be {_FORMS[kind]}, as JSON")
    return [memory for memory in exported_memories if memory.text]


_FORMS = {
    ExportingLibrary.MEM0: 'what get_all returns, {"results": [{"id": ..., "memory": ...}]}',
    ExportingLibrary.LANGMEM: 'a list of items of the store, [{"namespace": [...], "key": ..., "value": {...}}]',
    ExportingLibrary.LISTMEMORY: 'what dump_component returns, {"config": {"memory_contents": [{"content": ...}]}}',
    ExportingLibrary.CHROMADB: 'what Collection.get returns, {"ids": [...], "documents": [...], "metadatas": [...]}',
    ExportingLibrary.GRAPHITI: 'a list of EntityEdge values, [{"uuid": ..., "fact": ..., "valid_at": ...}]',
    ExportingLibrary.ZEP: 'a list of edges of a user, [{"uuid": ..., "fact": ..., "valid_at": ...}]',
}


def _mem0_memories(exported: Any) -> Iterable[ExportedMemory]:
    entries = exported.get("results", exported.get("memories", [])) if isinstance(exported, Mapping) else exported
    for place, entry in enumerate(_mappings(entries)):
        text = entry.get("memory") or entry.get("data") or entry.get("text") or ""
        yield ExportedMemory(_one_line(text), str(entry.get("id", place)), _last_change(entry))


def _langmem_memories(exported: Any) -> Iterable[ExportedMemory]:
    entries = exported.get("items", []) if isinstance(exported, Mapping) else exported
    for place, entry in enumerate(_mappings(entries)):
        namespace = entry.get("namespace") or entry.get("prefix")
        parts = namespace if isinstance(namespace, list) else [namespace] if namespace else []
        name = "/".join([*map(str, parts), str(entry.get("key", place))])
        yield ExportedMemory(_one_line(_text_of(entry.get("value"))), name, _last_change(entry))


def _listmemory_memories(exported: Any) -> Iterable[ExportedMemory]:
    config = exported.get("config", exported) if isinstance(exported, Mapping) else exported
    entries = config.get("memory_contents", []) if isinstance(config, Mapping) else config
    for place, entry in enumerate(_mappings(entries)):
        if str(entry.get("mime_type") or "text/plain").partition("/")[0] not in ("text", "application"):
            continue  # a picture has no words
        metadata = entry.get("metadata") if isinstance(entry.get("metadata"), Mapping) else {}
        yield ExportedMemory(_one_line(_text_of(entry.get("content"))), str(place), _last_change(metadata or {}))


def _chromadb_memories(exported: Any) -> Iterable[ExportedMemory]:
    columns = exported if isinstance(exported, Mapping) else {}
    texts, ids, metadatas = (columns.get(name) or [] for name in ("documents", "ids", "metadatas"))
    for place, text in enumerate(texts if isinstance(texts, list) else []):
        metadata = metadatas[place] if place < len(metadatas) else None
        name = ids[place] if place < len(ids) else place
        yield ExportedMemory(_one_line(text or ""), str(name), _last_change(metadata or {}))


def _graph_memories(exported: Any) -> Iterable[ExportedMemory]:
    entries = exported.get("edges", []) if isinstance(exported, Mapping) else exported
    for place, edge in enumerate(_mappings(entries)):
        valid_from = _instant(edge.get("valid_at"))
        # If an edge was expired and the end of its validity is unknown, it ended when it was expired.
        valid_to = _instant(edge.get("invalid_at")) or _instant(edge.get("expired_at"))
        if valid_from and valid_to and valid_to < valid_from:
            valid_from = None
        name = edge.get("uuid") or edge.get("uuid_") or place
        yield ExportedMemory(_one_line(edge.get("fact") or ""), str(name), _last_change(edge), valid_from, valid_to)


_OWNER_FIELDS = {
    "users": ("user_id", "user", "userId"),
    "groups": ("group_id", "graph_uuid"),  # as Graphiti and as Zep call it
    "namespaces": ("namespace", "prefix"),
}


def _check_single_owner(exported: Any) -> None:
    """Raise `SourceInvalid` if the entries of an export, or their metadata, name several people."""
    columns = exported.values() if isinstance(exported, Mapping) else (exported,)
    config = exported.get("config") if isinstance(exported, Mapping) else None
    columns = (*columns, *(config.values() if isinstance(config, Mapping) else ()))
    entries = [entry for column in columns for entry in _mappings(column)]
    entries += [entry["metadata"] for entry in entries if isinstance(entry.get("metadata"), Mapping)]
    for name, fields in _OWNER_FIELDS.items():
        owners = {str(entry[field]) for entry in entries for field in fields if entry.get(field)}
        if len(owners) > 1:
            raise SourceInvalid(
                f"the file holds the memories of {len(owners)} {name}; export each to a file of its own"
            )


def _mappings(entries: Any) -> list[Mapping[str, Any]]:
    return [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []


def _text_of(value: Any) -> str:
    """Return the text of a value: that of its `content`, or else that of all its fields."""
    if isinstance(value, Mapping):
        if "content" in value:
            return _text_of(value["content"])
        fields = ((name, _text_of(inner)) for name, inner in value.items() if name != "kind")
        return "; ".join(f"{name}: {text}" for name, text in fields if text)
    if isinstance(value, list):
        return ", ".join(text for inner in value if (text := _text_of(inner)))
    return "" if value is None else str(value)


def _one_line(text: Any) -> str:
    return " ".join(str(text).split())


def _last_change(entry: Mapping[str, Any]) -> datetime | None:
    times = (_instant(entry.get(name)) for name in ("updated_at", "created_at", "timestamp"))
    return next((at for at in times if at is not None), None)


def _instant(value: Any) -> datetime | None:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
        return None if at is None else at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        return None
