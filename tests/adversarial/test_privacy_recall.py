"""How much of the generated secrets and wishes is recognised, with thresholds, and that nothing else is touched."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from afterword.facts.transcripts import Role, Turn
from afterword.privacy.off_record import hide_off_record
from afterword.privacy.record_requests import HIDDEN, Markers, RecordChange
from afterword.privacy.redaction import Masking
from privacy_table import harmless_rows, language_rows, record_rows, secret_rows, table
from record_wording_cases import record_wording_cases
from secret_cases import TOOL_ARGUMENT_NAMES, secret_cases

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MOST_MISSED, MOST_MISSED_WISHES = 0.05, 0.02


def test_of_at_least_a_thousand_secrets_one_in_twenty_is_missed_at_most() -> None:
    rows = {row.category: row for row in secret_rows()}
    settled = [row for name, row in rows.items() if not name.startswith(("unforeseen", "later"))]
    assert sum(row.cases for row in settled) >= 1_000
    assert [row for row in settled if row.wrong > MOST_MISSED * row.cases] == []
    later = [row for name, row in rows.items() if name.startswith("later")]
    later.append(rows["unforeseen sentence, word like a password"])
    assert sum(row.wrong for row in later) <= MOST_MISSED * sum(row.cases for row in later)


def test_no_documented_language_is_worse_than_another() -> None:
    rows = language_rows()
    assert {"en", "de", "es", "fr", "it", "pt", "nl"} <= {row.category for row in rows}
    assert [row for row in rows if row.wrong > MOST_MISSED * row.cases] == []


def test_harmless_texts_stay_as_they_are() -> None:
    rows = harmless_rows()
    assert sum(row.cases for row in rows) >= 400
    assert [row for row in rows if row.wrong] == []


def test_of_the_wishes_to_be_off_the_record_one_in_fifty_is_missed_at_most() -> None:
    rows = record_rows()
    honest = [row for row in rows if "honest" in row.category]
    wishes = [row for row in rows if "honest" not in row.category]
    assert sum(row.cases for row in wishes) >= 800
    assert sum(row.wrong for row in wishes) <= MOST_MISSED_WISHES * sum(row.cases for row in wishes)
    assert sum(row.cases for row in honest) >= 300
    assert [row for row in honest if row.wrong] == []


def test_an_agents_later_repetition_of_what_was_off_the_record_is_hidden() -> None:
    """Two turns later an agent repeats, without the wish, the longest sentence of what was said off the record."""
    wishes = [case.text for case in record_wording_cases() if case.is_hidden and Markers().requested_change(case.text)]
    repeated = [(wish, _remark(wish)) for wish in wishes]
    missed = [
        wish
        for wish, remark in repeated
        if _turns_after(wish, "And in Rome?", f"As you told me, {remark}")[-1] != HIDDEN
    ]
    assert len(wishes) >= 500
    assert len(missed) <= MOST_MISSED_WISHES * len(wishes), missed


def _remark(wish: str) -> str:
    sentences = [sentence.strip() for sentence in re.split(r"[:.?!]\s", wish)]
    return max(sentences, key=lambda sentence: (Markers().requested_change(sentence) is None, len(sentence)))


def _turns_after(wish: str, question: str, repetition: str) -> list[str]:
    said = [(Role.HUMAN, wish), (Role.AGENT, "I see."), (Role.HUMAN, question), (Role.AGENT, repetition)]
    turns = [Turn(number, role.value, role, text, NOON) for number, (role, text) in enumerate(said, 1)]
    return [turn.text for turn in hide_off_record(turns, Markers())]


@pytest.mark.parametrize(
    ("announced", "lasts"),
    [
        ("Don't save what I say next.", True),
        ("Bitte nicht merken, was ich jetzt sage.", True),
        ("This conversation must not be saved: I quit.", True),
        ("From now on, don't store anything.", True),
        ("Don't save this: I quit.", False),
    ],
)
def test_a_wish_about_what_follows_or_about_all_lasts(announced: str, *, lasts: bool) -> None:
    assert Markers().requested_change(announced) is (RecordChange.OFF if lasts else RecordChange.THIS)


def test_a_secret_is_masked_once_and_stays_masked() -> None:
    for case in secret_cases():
        masking, again = Masking(), Masking()
        stored = [(speaker, masking.mask_next_turn(text, speaker)) for speaker, text in case.turns]
        assert [again.mask_next_turn(text, speaker) for speaker, text in stored] == [text for _, text in stored], (
            case.text
        )


@pytest.mark.parametrize("name", TOOL_ARGUMENT_NAMES)
def test_an_argument_named_like_a_secret_is_masked(name: str) -> None:
    arguments = json.dumps({name: "Krabbe77brot", "attempts": 3, "query": "seats"}, ensure_ascii=False)
    call = {"id": "call_1", "name": "login", "arguments": arguments}
    message = {"type": "AssistantMessage", "source": "helper", "content": [call]}
    masking = Masking()
    masked = masking.mask_state({"llm_context": {"messages": [message]}})
    assert "Krabbe77brot" not in json.dumps(masked)
    stored = json.loads(masked["llm_context"]["messages"][0]["content"][0]["arguments"])
    assert (stored["attempts"], stored["query"], masking.counts.total()) == (3, "seats", 1)


def test_a_saved_state_masks_an_answer_as_a_conversation_does() -> None:
    question = {"type": "TextMessage", "source": "helper", "content": "What is your wifi password?"}
    answer = {"type": "TextMessage", "source": "mira", "content": "sunshine"}
    masking = Masking()
    masked = masking.mask_state({"message_thread": [question, answer]})
    assert masked["message_thread"][1]["content"] == "[redacted: password]"
    assert masking.counts == {"password": 1}


@pytest.mark.parametrize("benchmark", ["locomo", "memorycode"])
def test_real_conversations_hold_no_secret_and_no_wish(shared: Path, benchmark: str) -> None:
    lines = (shared / "data" / "benchmarks" / benchmark / "sessions.jsonl").read_text(encoding="utf-8").splitlines()
    for session in map(json.loads, lines):
        masking = Masking()
        for message in session["messages"]:
            text = message.get("text") or ""
            assert masking.mask_next_turn(text, message["source"]) == text
            assert message["role"] != "user" or Markers().requested_change(text) is None, text


def test_the_documents_hold_the_table(repository: Path) -> None:
    assert table() in (repository / "docs" / "security.md").read_text(encoding="utf-8")
