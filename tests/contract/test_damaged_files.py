"""Whatever is wrong with a file that is imported or replayed, the error is `FileInvalid` and names the place."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import Session

from afterword.errors import FileInvalid
from afterword.extractors.rules import RulesJudge
from afterword.extractors.testing import OracleExtractor
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import LARGEST_STATE_BYTES
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.pipeline.sources.other_libraries import ExportingLibrary, read_export
from afterword.store import rows, sessions
from afterword.store.database.engine import Store
from afterword.store.forgetting import erasure, tombstone_replay
from afterword.store.transfer import export_lines, exports, imports
from deciding_words import find

LENA = Scope.user("lena")
NOW = datetime(2026, 4, 1, tzinfo=UTC)
WRONG: list[Any] = [None, 7, -1, 2**70, 1.5, True, "x", "\ud800", [], [[]], ["x"], {}, {"x": "x"}]
Place = tuple[str | int, ...]


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with Store("sqlite://") as opened:
        await opened.migrate()
        yield opened


async def exported(store: Store, path: Path) -> list[dict[str, Any]]:
    """Fill the store, export it, and return the lines."""
    for number, said in enumerate(["home: Gnarlsburg", "home: Linz", "seat: window", "forget seat: window"]):
        messages = [{"content": said, "source": "user", "type": "UserMessage"}]
        state = {"type": "AssistantAgentState", "llm_context": {"messages": messages}}
        at = datetime(2026, 3, 1 + number, tzinfo=UTC)
        saved = Saved(LENA, f"s{number}", state=state, started_at=at, ended_at=at)
        await process_session(store, saved, extractor=OracleExtractor(find), judge=RulesJudge(), apply=number != 3)
    live: dict[str, Any] = {"messages": []}

    def save(transaction: Session) -> None:
        sessions.save_state(transaction, LENA, "a", component="x", state=live, at=NOW)

    await store.write(save)
    await erasure.erase_in_scope(store, LENA, lambda erasing: erasing.forget_session("s2"), at=NOW)
    await exports.export_scopes(store, path, even_asked=True)
    return lines_of(path)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def places(node: Any, above: Place = ()) -> Iterator[Place]:
    """Yield the place of every value; of a list its first."""
    children = node.items() if isinstance(node, dict) else enumerate(node[:1]) if isinstance(node, list) else ()
    for key, child in children:
        yield (*above, key)
        yield from places(child, (*above, key))


def replaced(node: Any, place: Place, value: Any) -> Any:
    if not place:
        return value
    copy = node.copy()
    copy[place[0]] = replaced(node[place[0]], place[1:], value)
    return copy


def write_lines(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


async def import_anew(path: Path) -> str | None:
    """Import into an empty store; return why the file is refused, None if it is not."""
    async with Store("sqlite://") as elsewhere:
        await elsewhere.migrate()
        try:
            await imports.import_file(elsewhere, path)
        except FileInvalid as error:
            return str(error)
    return None


async def test_a_wrong_value_anywhere_is_an_invalid_file_or_harmless(store: Store, tmp_path: Path) -> None:
    lines = await exported(store, tmp_path / "whole.jsonl")
    damaged_path, kinds, number = tmp_path / "damaged.jsonl", set[str](), 0
    for place, line in enumerate(lines):
        if line["row"] in kinds:
            continue
        kinds.add(line["row"])
        for within in places(line):
            number += 1
            for value in (WRONG[number % len(WRONG)], WRONG[(number * 5 + 3) % len(WRONG)]):
                write_lines(damaged_path, [*lines[:place], replaced(line, within, value), *lines[place + 1 :]])
                try:
                    list(export_lines.read_groups(damaged_path))
                except FileInvalid:
                    continue
                reason = await import_anew(damaged_path)
                assert reason is None or str(damaged_path) in reason or "export" in reason, (line["row"], within, value)
    assert kinds >= {"head", "key", "tombstone", "scope", "session", "assertion", "window", "verdict", "run", "foot"}


async def test_a_missing_line_is_an_invalid_file_or_harmless(store: Store, tmp_path: Path) -> None:
    lines = await exported(store, tmp_path / "whole.jsonl")
    for place in range(1, len(lines) - 1):
        write_lines(
            tmp_path / "cut.jsonl", [*lines[:place], *lines[place + 1 : -1], {"row": "foot", "lines": len(lines) - 3}]
        )
        await import_anew(tmp_path / "cut.jsonl")


@pytest.mark.parametrize(
    "content",
    [
        b"\x00\x01\xff\xfe",
        b"SQLite format 3\x00\xff",
        b"[" * 100_000,
        b'"row"\n',
        b"[]\n",
        b"null\n",
        b"",
        b'{"row": []}\n',
    ],
    ids=["bytes", "database", "nested", "text", "list", "null", "empty", "row"],
)
async def test_a_file_of_anything_else_is_invalid(store: Store, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "any.jsonl"
    path.write_bytes(content)
    with pytest.raises(FileInvalid):
        await imports.import_file(store, path)
    with pytest.raises(FileInvalid):
        await tombstone_replay.replay_tombstones(store, path, at=NOW)


async def test_bytes_within_an_export_are_told_with_their_line(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    await exported(store, path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"\xff\xfe\n", *lines[4:]]))
    with pytest.raises(FileInvalid, match="line 4 cannot be read"):
        await imports.import_file(store, path)
    with pytest.raises(FileInvalid, match=r"cannot be read"):
        await imports.import_file(store, tmp_path)


async def test_a_wrong_tombstone_is_an_invalid_file_or_harmless(store: Store, tmp_path: Path) -> None:
    await exported(store, tmp_path / "all.jsonl")
    await tombstone_replay.write_tombstones(store, tmp_path / "stones.jsonl")
    lines = lines_of(tmp_path / "stones.jsonl")
    kinds = [line["row"] for line in lines]
    for kind in ("key", "tombstone", "seen"):
        place = kinds.index(kind)
        for within in places(lines[place]):
            for value in [*WRONG, "2026-04-01T00:00:00"]:
                wrong = [*lines[:place], replaced(lines[place], within, value), *lines[place + 1 :]]
                write_lines(tmp_path / "wrong.jsonl", wrong)
                with suppress(FileInvalid):
                    await tombstone_replay.replay_tombstones(store, tmp_path / "wrong.jsonl", at=NOW)


@pytest.mark.parametrize("size", [LARGEST_STATE_BYTES + 1, 5 * LARGEST_STATE_BYTES])
async def test_a_state_that_grows_without_limit_is_refused(store: Store, tmp_path: Path, size: int) -> None:
    lines = await exported(store, tmp_path / "all.jsonl")
    place = next(place for place, line in enumerate(lines) if line.get("state"))
    packing = zlib.compressobj(9)
    packed = packing.compress(b'{"x": "')
    for _ in range(size // 2**20 + 1):
        packed += packing.compress(b"a" * 2**20)
    packed += packing.compress(b'"}') + packing.flush()
    state = {**lines[place]["state"], "content": b64encode(packed).decode()}
    write_lines(tmp_path / "large.jsonl", [*lines[:place], {**lines[place], "state": state}, *lines[place + 1 :]])
    async with Store("sqlite://") as elsewhere:
        await elsewhere.migrate()
        with pytest.raises(FileInvalid, match=f"line {place + 1} .*64 MiB"):
            await imports.import_file(elsewhere, tmp_path / "large.jsonl")


def test_a_state_of_words_that_ascii_spells_longer_is_read() -> None:
    state = {"x": "\u00f6" * (LARGEST_STATE_BYTES // 4)}
    rows.check_packed_state(rows.pack_state(state))


@pytest.mark.parametrize("namespace", [7, "a", ["a", 7], None, {"a": "b"}])
def test_a_namespace_of_another_library_may_be_anything(namespace: object) -> None:
    exported = [{"namespace": namespace, "key": "k", "value": {"content": "Has a cat."}}]
    (memory,) = read_export(ExportingLibrary.LANGMEM, exported)
    assert (memory.text, memory.id.rpartition("/")[2]) == ("Has a cat.", "k")
