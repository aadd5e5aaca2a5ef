"""The offline extractor on any text: grounded, quick, and quiet where nothing was said; and on the scenarios."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.extractors.extractor import Window
from afterword.extractors.grounding import ground
from afterword.extractors.quote_search import find_quote
from afterword.extractors.rules.extractor import find_candidates
from afterword.extractors.windows import cut_windows
from afterword.facts.assertions import Assertion, SpeechAct
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, TimeBasis, Transcript, Turn, find_owners

TRIES = 2
SAID_AT = datetime(2026, 3, 9, 8, 0, tzinfo=UTC)
PHRASES = st.sampled_from(
    [
        "I prefer",
        "window seats",
        ".",
        ", ",
        "my wife Runa",
        "and",
        "not",
        "from now on",
        "until 12 November",
        "?",
        '"',
        "“",
        "”",
        ";)",
        "\n",
        "\n\n",
        "No ",
        "any more",
        ": ",
        "Ada Berg",
        "he ",
        "is allergic to",
        "nuts",
        "max 90 a night",
        "we go with",
        "Postgres",
        "’",
        "closed on Mondays",
        "forget what I said ",
        "about",
        "the trip",
        "```",
        "> ",
        "3,200 a day",
        "Actually",
        "I’d rather",
        "take",
        "Payment",
        "never",
        "—",
        "...",
        "😀",
        "\x00",
        "ß",
        "every second Friday",
        "!",
        "must have",
        "don't ever",
        "My ",
    ]
)
TEXTS = st.one_of(
    st.text(max_size=200), st.lists(PHRASES, max_size=30).map("".join), st.lists(PHRASES, max_size=20).map(" ".join)
)


def window(text: str) -> Window:
    return Window(1, (Turn(1, "user", Role.HUMAN, text, SAID_AT),), (), ("user",), ("user",))


@given(text=TEXTS)
def test_every_candidate_stands_in_the_text_and_passes_grounding(text: str) -> None:
    """Rules copy: whatever they find, grounding must never have to refuse it."""
    found = find_candidates(window(text))
    transcript = Transcript(window(text).turns, "test", humans=("user",), time_basis=TimeBasis.TURNS)
    grounded = ground(found, transcript, scope=Scope.user("ada"), session_id="s", owners=("user",))
    assert grounded.rejections == ()
    assert all(find_quote(citation.quote, text) for one in found for citation in one.evidence)


@pytest.mark.parametrize(
    "piece",
    ["a ", "(((", '"a ', "„a ", ". ", "\n", "A. ", "Ada Berg ", "10 10 ", "I like a, ", "> a\n", "```\n", "`", "no a ",
     "I live in Oslo. ", "please ", "I like a, I like ", "said ", "translate\t", "Actually, I live in Oslo. "],
)  # fmt: skip
def test_the_work_grows_in_proportion_to_the_text(piece: str) -> None:
    short, long = (piece * (size // len(piece)) for size in (10_000, 100_000))
    most_s = 30 * max(min(seconds_for(short), seconds_for(short)), 0.002)
    # What is slow by itself is slow each time, what another process slowed down is not.
    assert any(seconds_for(long) <= most_s for _ in range(TRIES)), "a square takes a hundred times as long"


def seconds_for(text: str) -> float:
    """Return the processor time that a text takes."""
    before = time.process_time()
    find_candidates(window(text))
    return time.process_time() - before


@pytest.mark.parametrize("words", ["no a b ", "Ab ", "1 ", "I always a ", "the a is ", "I like and ", "now "])
def test_no_sentence_takes_long(words: str) -> None:
    assert any(seconds_for((words * 200)[:299] + ".") < 0.5 for _ in range(TRIES))


ROLES = {"user": Role.HUMAN, "assistant": Role.AGENT, "tool_call": Role.TOOL, "tool_result": Role.TOOL} | {
    role.value: role for role in (Role.MEMORY, Role.THOUGHT, Role.SYSTEM)
}


def assertions(session: dict[str, Any], scope: Scope) -> tuple[Assertion, ...]:
    said_at = datetime.fromisoformat(session["started_at"])
    turns = tuple(
        Turn(
            number,
            message.get("source", message["role"]),
            ROLES[message["role"]],
            message.get("content") or "",
            said_at,
        )
        for number, message in enumerate(session["messages"], start=1)
    )
    humans = tuple(dict.fromkeys(turn.speaker for turn in turns if turn.role is Role.HUMAN))
    transcript = Transcript(turns, "scenario", humans=humans, time_basis=TimeBasis.MANIFEST)
    owning = find_owners(transcript.humans, transcript.assumed, scope)
    found = [candidate for part in cut_windows(transcript, owning) for candidate in find_candidates(part)]
    grounded = ground(found, transcript, scope=scope, session_id=session["session_id"], owners=owning)
    assert grounded.rejections == ()
    return grounded.assertions


def matches(keywords: list[list[str]], statement: str) -> bool:
    return all(any(re.search(item, statement, re.IGNORECASE) for item in group) for group in keywords)


def test_the_scenarios_are_read_without_a_single_thing_that_is_no_fact(shared: Path) -> None:
    recalled = wanted = stored = matched = 0
    for path in sorted((shared / "data" / "scenarios").glob("*.json")):
        scenario = json.loads(path.read_text(encoding="utf-8"))
        scope = Scope.user(scenario["user_id"])
        statements = [
            one.statement
            for session in scenario["sessions"]
            for one in assertions(session, scope)
            if one.act is SpeechAct.STATE
        ]
        gold = [fact["keywords"] for fact in scenario["gold"]["facts"] if fact["status"] != "retracted"]
        wanted += len(gold)
        recalled += sum(any(matches(keywords, statement) for statement in statements) for keywords in gold)
        stored += len(statements)
        matched += sum(any(matches(keywords, statement) for keywords in gold) for statement in statements)
        for wrong in scenario["gold"]["not_facts"]:
            assert not [statement for statement in statements if matches(wrong["keywords"], statement)], path.name
    assert wanted == 161
    assert recalled >= 1
    assert matched / stored >= 0.5
