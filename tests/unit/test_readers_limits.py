"""Broken, hostile and huge files give a named error that says where and what to do, in time."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from afterword.extractors.errors import LayoutUnknown, ReadError, StateBroken, StateTooLarge
from afterword.extractors.readers import parse_state, read_file, read_state


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"", "position 0"),
        (b" \n ", "position 0"),
        (b'{"type": "TeamState", ', "line 1 column 23"),
        (b"[1, 2", "line 1"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        ("{}".encode("utf-16"), "byte order mark"),
        (b'{"a": "\xff"}', "byte 7"),
        (b'{"NaN": "NaN", "b": NaN}', "position 20"),
        (b"[-Infinity]", "position 1"),
        (b"[" + b"9" * 5000 + b"]", "digits"),
        (b'{"at": 1e999}', "too large"),
        (b"{} {}", "line 1 column 4"),
    ],
)
def test_a_broken_file_is_named_with_its_place(tmp_path: Path, raw: bytes, told: str) -> None:
    path = tmp_path / "session.json"
    path.write_bytes(raw)
    with pytest.raises(StateBroken) as caught:
        read_file(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert told in str(caught.value)


@pytest.mark.parametrize("raw", [b"[" * 10_000 + b"]" * 10_000, b'{"a":' * 10_000 + b"1" + b"}" * 10_000])
def test_deep_nesting_is_a_named_error(raw: bytes) -> None:
    with pytest.raises(StateTooLarge, match="200 levels"):
        parse_state(raw)


def test_nesting_is_bound_at_200_levels_also_for_parsed_values() -> None:
    value: object = []
    for _ in range(199):
        value = [value]
    with pytest.raises(LayoutUnknown):
        read_state(value)
    with pytest.raises(StateTooLarge):
        read_state([value])


def test_a_file_over_the_limit_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    with pytest.raises(StateTooLarge, match=str(path)):
        read_file(path)


def test_a_missing_file_is_a_read_error(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="cannot be opened"):
        read_file(tmp_path / "none.json")
    with pytest.raises(ReadError, match="cannot be opened"):
        read_file(tmp_path)


@pytest.mark.parametrize(
    "data", [{}, 5, None, True, "secret words", {"name": "secret words", "secret words": 1, "n": 2}, ["secret words"]]
)
def test_an_unknown_layout_is_described_without_a_word_of_anyones(data: object) -> None:
    with pytest.raises(LayoutUnknown) as caught:
        read_state(data)
    assert "secret" not in str(caught.value)
    assert "supported are" in str(caught.value)


def test_an_unknown_layout_names_its_keys() -> None:
    with pytest.raises(LayoutUnknown, match=r"keys name \(text\), items \(list\)"):
        read_state({"name": "x", "items": []})


BOUNDED = """
import re, sys
from pathlib import Path
from afterword.extractors.readers import read_file
print(len(read_file(Path(sys.argv[1])).turns), *re.findall(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text()))
"""
"""Prints the number of turns and the peak of memory in KiB. `ru_maxrss` would count what the test's process had when it
forked."""


@pytest.mark.parametrize(
    ("count", "most_kib"), [(15_000, 1 << 18), pytest.param(60_000, 1 << 20, marks=pytest.mark.soak)]
)
def test_a_large_team_is_read_in_bounded_time_and_memory(tmp_path: Path, count: int, most_kib: int) -> None:
    head: dict[str, object] = {
        "models_usage": None,
        "metadata": {},
        "created_at": "2026-11-20T12:32:16.268093Z",
        "type": "TextMessage",
    }
    said = [("user" if number % 2 else "planner", f"This is message {number}.") for number in range(count)]
    thread = [
        {"id": str(uuid.UUID(int=number)), "source": source, "content": text, **head}
        for number, (source, text) in enumerate(said)
    ]
    context = [{"type": "UserMessage", "source": source, "content": text} for source, text in said]
    states = {
        "planner": {"agent_state": {"llm_context": {"messages": context}}},
        "GraphManager": {"message_thread": thread},
    }
    path = tmp_path / "large.json"
    path.write_text(json.dumps({"agent_states": states}))
    done = subprocess.run(
        [sys.executable, "-c", BOUNDED, str(path)],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)),
        timeout=60,
    )
    turns, peak_kib = map(int, done.stdout.split())
    assert turns == count
    assert peak_kib < most_kib


@pytest.mark.parametrize(
    "text",
    [
        "Relevant memories:\n" + "\n \n" * 250_000,
        "<afterword:memory " * 50_000,
        "<afterword:memory>" * 50_000,
        "\n" * 500_000 + "# Memories that might help\n",
        "data:a/b;base64," * 50_000,
        "data:" + "a" * 500_000 + ";base64,",
        '{"a":' * 50_000,
        "=== CANVAS FILES ===" * 25_000,
    ],
)
def test_any_text_is_read_to_its_end(text: str) -> None:
    """Patterns over text that anyone may write must stay linear: else these would be read for hours."""
    read_state([{"role": "user", "content": text}])
    read_state([{"type": "TextMessage", "source": "user", "content": text}])
