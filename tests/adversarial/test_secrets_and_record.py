"""Secrets and words off the record: not stored, not served, not sent to an extractor, not shown."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, inspect, text

import afterword
from afterword.extractors.candidates import Candidate, Citation, mask_candidate
from afterword.extractors.extractor import Extraction, Rejection, Window
from afterword.extractors.model.prompts.rendering import render_window
from afterword.extractors.rules import RulesExtractor
from afterword.facts.assertions import Kind
from afterword.facts.transcripts import Role, Turn
from afterword.privacy.off_record import hide_off_record
from afterword.privacy.policy import Privacy
from afterword.privacy.record_requests import HIDDEN, HIDDEN_FROM_HERE, Markers
from afterword.setting_sections import EmbeddingOptions
from afterword.settings import Settings
from fresh_record_cases import fresh_record_cases
from fresh_secret_cases import fresh_secret_cases
from off_record_cases import SECRET_SENTENCE
from privacy_table import is_missed
from secret_cases import SecretCase

WITHOUT_VECTORS = Settings(embedding=EmbeddingOptions(kind="none"))
CASES = [case for case in fresh_secret_cases() if len(case.secret) >= 6]
CATEGORIES = sorted({case.category for case in CASES})
WISHES = [case.text for case in fresh_record_cases() if case.is_hidden]
HONEST = [case.text for case in fresh_record_cases() if not case.is_hidden]


class ListeningExtractor:
    """Finds what the rules find, and records what a model would be sent."""

    version = "listening-1"

    def __init__(self) -> None:
        self.requests: list[str] = []

    async def extract(self, window: Window) -> Extraction:
        self.requests.append(render_window(window))
        return await RulesExtractor().extract(window)

    async def repair(self, window: Window, rejections: Sequence[Rejection]) -> Extraction:
        return Extraction(())


def state(turns: Sequence[tuple[str, str]]) -> dict[str, Any]:
    kinds = {"user": "UserMessage", "helper": "AssistantMessage"}
    messages = [{"content": words, "source": speaker, "type": kinds[speaker]} for speaker, words in turns]
    return {"type": "AssistantAgentState", "llm_context": {"messages": messages}}


def stored(path: Path) -> str:
    """All values of a store, and what its packed columns hold."""
    engine = create_engine(f"sqlite:///{path}")
    values: list[str] = []
    with engine.connect() as connection:
        for table in inspect(engine).get_table_names():
            for row in connection.execute(text(f'select * from "{table}"')):
                for value in row:
                    is_packed = isinstance(value, bytes) and value[:1] == b"\x78"
                    values.append(zlib.decompress(value).decode() if is_packed else str(value))
    engine.dispose()
    return "\n".join(values)


async def everything_about(path: Path, saved: dict[str, Any], human: str = "user") -> dict[str, str]:
    """What is stored, served, sent and shown after a session was recorded and processed."""
    extractor = ListeningExtractor()
    async with afterword.open(f"sqlite:///{path}", settings=Settings(), extractor=extractor) as app:
        mira = app.user("mira")
        await mira.process(saved, session_id="s", started_at="2026-03-03T10:00:00Z", humans=[human])
        served = (await mira.context("password pin key code Lindau job")).text
        details = await mira.session("s")
    shown = json.dumps([[read.turn.text for read in details.turns], [refused.detail for refused in details.rejected]])
    return {"stored": stored(path), "served": served, "sent": "\n".join(extractor.requests), "shown": shown}


@pytest.mark.parametrize("category", CATEGORIES)
async def test_a_secret_is_nowhere(category: str, tmp_path: Path) -> None:
    cases: list[SecretCase] = [case for case in CASES if case.category == category and not is_missed(case)]
    turns = [turn for case in cases for turn in (*case.turns, ("helper", "Noted."), ("user", "Thanks."))]
    copies = await everything_about(tmp_path / "facts.db", state(turns))
    assert len(cases) >= 10
    leaks = {(name, case.text) for name, copy in copies.items() for case in cases if case.secret in copy}
    assert leaks == set()


@pytest.mark.parametrize("wish", WISHES)
def test_a_wish_hides_the_turn_the_answer_and_what_repeats_it(wish: str) -> None:
    turns = [
        Turn(1, "mira", Role.HUMAN, "Hello"),
        Turn(2, "mira", Role.HUMAN, wish),
        Turn(3, "helper", Role.AGENT, "I understand."),
        Turn(4, "mira", Role.HUMAN, "back on the record. What is the weather?"),
        Turn(5, "helper", Role.AGENT, "Rain. About your plan to quit in Lindau: good luck!"),
        Turn(6, "helper", Role.AGENT, "Take an umbrella."),
    ]
    shown = [turn.text for turn in hide_off_record(turns, Markers())]
    assert shown[1] in (HIDDEN, HIDDEN_FROM_HERE)
    assert shown[2] == HIDDEN
    assert "Lindau" not in "".join(shown)
    assert shown[0] == "Hello"
    assert shown[3].endswith("weather?")
    assert shown[5] == "Take an umbrella."


@pytest.mark.parametrize("words", HONEST)
def test_an_honest_turn_stays(words: str) -> None:
    turn = Turn(1, "mira", Role.HUMAN, words)
    assert hide_off_record([turn], Markers()) == (turn,)


@pytest.mark.parametrize("speaker", ["user", "mira", "Anna Lind"])
async def test_words_off_the_record_are_nowhere(speaker: str, tmp_path: Path) -> None:
    turns = [turn for wish in WISHES for turn in (("user", wish), ("user", "back on the record"), ("user", "Fine."))]
    saved = state([("user", "I live in Oslo."), *turns])
    for message in saved["llm_context"]["messages"]:
        message["source"] = speaker
    extractor_copies = await everything_about(tmp_path / "facts.db", saved, speaker)
    assert {name for name, copy in extractor_copies.items() if SECRET_SENTENCE in copy or "Lindau" in copy} == set()
    assert "Oslo" in extractor_copies["served"]


async def test_an_imported_export_is_masked(tmp_path: Path) -> None:
    """Somebody wrote a secret and words off the record into the file."""
    secret, aside = "Trombone1987!", "Off the record: I will quit my job in Lindau"
    raw, clean, exported = tmp_path / "raw.db", tmp_path / "clean.db", tmp_path / "export.jsonl"
    async with afterword.open(f"sqlite:///{raw}", settings=Settings()) as app:
        await app.user("mira").process(
            state([("user", "I live in Oslo. XX"), ("user", "YY")]), session_id="s", started_at="2026-03-03T10:00:00Z"
        )
        await app.user("mira").export(exported)
    lines = exported.read_text(encoding="utf-8")
    exported.write_text(lines.replace("XX", f"My password is {secret}").replace("YY", aside), encoding="utf-8")
    async with afterword.open(f"sqlite:///{clean}", settings=Settings()) as app:
        await app.import_(exported)
        shown = [read.turn.text for read in (await app.user("mira").session("s")).turns]
    assert shown == ["I live in Oslo. My password is [redacted: password]", HIDDEN]
    assert secret not in stored(clean)
    assert "Lindau" not in stored(clean)


@pytest.mark.parametrize("place", ["statement", "subject", "attribute", "value", "tags"])
async def test_no_part_of_what_an_application_enters_keeps_a_secret(tmp_path: Path, place: str) -> None:
    entered: dict[str, Any] = {
        "statement": "I bank at Acme.",
        "subject": "user",
        "attribute": "bank",
        "value": "Acme",
        "tags": ["bank"],
    }
    told = "my password is Zebra!Kettle9. I bank at Acme"
    entered[place] = [told] if place == "tags" else told
    async with afterword.open(f"sqlite:///{tmp_path}/a.db", settings=WITHOUT_VECTORS) as app:
        mira = app.user("mira")
        await mira.remember(**entered)
        await app.export(tmp_path / "all.jsonl")
    assert "Zebra" not in stored(tmp_path / "a.db")
    lines = (tmp_path / "all.jsonl").read_text().replace("[redacted: password]", "Zebra!Kettle9")
    (tmp_path / "edited.jsonl").write_text(lines)
    async with afterword.open(f"sqlite:///{tmp_path}/b.db", settings=WITHOUT_VECTORS) as app:
        assert (await app.import_(tmp_path / "edited.jsonl")).imported["assertions"] == 1
    assert "Zebra" not in stored(tmp_path / "b.db")


def test_no_part_of_what_a_model_answers_keeps_a_secret() -> None:
    told = "my password is Zebra!Kettle9"
    proposed = Candidate(
        kind=Kind.ENTITY,
        subject=told,
        attribute=told,
        value=told,
        statement=told,
        evidence=[Citation(turn=1, quote=told)],
        limited_to=told,
        outcome=told,
        former_name=told,
    )
    assert "Zebra" not in mask_candidate(proposed, Privacy()).model_dump_json()
