"""Sentences that were written before the patterns were changed for them, in sets, by language: see `chat_sets.txt`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from off_record_cases import RecordCase
from secret_cases import HarmlessCase, SecretCase

_HEAD = re.compile(r"\[(?P<set>\w+) (?P<part>secrets|record|honest) (?P<language>\w\w)\]")
_SECRET = re.compile("⟦(.+?)⟧")
_AGENT = "agent: "


@dataclass(frozen=True, slots=True)
class _Line:
    number: str
    part: str
    language: str
    text: str


def _lines() -> Iterator[_Line]:
    number, part, language = "", "", ""
    for line in Path(__file__).with_name("chat_sets.txt").read_text(encoding="utf-8").splitlines():
        if head := _HEAD.fullmatch(line):
            number, part, language = head["set"], head["part"], head["language"]
        elif not line.startswith("#"):
            yield _Line(number, part, language, line)


def chat_set_secrets() -> Iterator[SecretCase]:
    """Yield a case for each secret of each set."""
    for line in _lines():
        if line.part != "secrets":
            continue
        said = _SECRET.sub(r"\1", line.text).split(" || ")
        turns = tuple(
            ("helper", text.removeprefix(_AGENT)) if text.startswith(_AGENT) else ("user", text) for text in said
        )
        for secret in _SECRET.findall(line.text):
            yield SecretCase(f"{line.number} chat set", line.language, turns, secret)


def chat_set_wishes() -> Iterator[RecordCase]:
    """Yield the requests to keep nothing of each set."""
    for line in _lines():
        if line.part == "record":
            yield RecordCase(f"{line.number} chat set", line.text, is_hidden=True)


def chat_set_honest() -> Iterator[HarmlessCase]:
    """Yield the sentences without a secret and without a request, which change nothing."""
    for line in _lines():
        if line.part == "honest":
            yield HarmlessCase("honest sentence of the chat sets", line.text)
