"""The offline extractor on any text: grounded, quick, and quiet where nothing was said; and on the scenarios."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.extractors.extractor import Window
from afterword.extractors.grounding import ground
from afterword.extractors.quote_search import find_quote
from afterword.extractors.rules import dates, extractor, grammar, phrases, withdrawals
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


def examples(pattern: re.Pattern[str]) -> list[str]:
    """Return texts in which each alternative of a pattern stands at least once. Look-arounds are left out."""
    return _examples_of(list(re._parser.parse(pattern.pattern, pattern.flags)))


def _examples_of(parts: list[tuple[Any, Any]]) -> list[str]:
    columns = [_alternatives(str(kind), what) for kind, what in parts]
    return [
        "".join(column[row % len(column)] for column in columns) for row in range(max(map(len, columns), default=1))
    ]


def _alternatives(kind: str, what: Any) -> list[str]:
    if kind == "LITERAL":
        return [chr(what)]
    if kind == "BRANCH":
        return [text for branch in what[1] for text in _examples_of(list(branch))]
    if kind == "SUBPATTERN":
        # What a group names may be a name, a thing, or a list with a correction.
        is_open = [str(part[0]) for part in what[3]] in (["MAX_REPEAT"], ["MIN_REPEAT"])
        return OPEN_WORDS if is_open else _examples_of(list(what[3]))
    if kind in ("MAX_REPEAT", "MIN_REPEAT"):
        least, most, repeated = what
        once = _examples_of(list(repeated))
        return [*([""] if least == 0 else []), *(text * max(1, least) for text in once), *(once if most > 2 else [])]
    if kind == "IN":
        return [chr(next((value for mark, value in what if str(mark) == "LITERAL"), ord("7")))]
    return ["x"] if kind == "ANY" else [""]


OPEN_WORDS = ["Tim", "tea", "Tim, not Tom", "nuts and milk", "7 May", "", "."]
SUBJECTS = ["I ", "I'm ", "We ", "My wife ", "My wife is called ", "My 7-year-old son, ", "Nils ", "My parents ", ""]
ENDS = ["", ", not Tom", " any more", " not", " no longer", ", not the other", " until 31 February", " in May", " now"]
STARTS = ["", "No, ", "I never said that ", "Forget that ", "Actually, I don't "]


def grammar_patterns() -> list[re.Pattern[str]]:
    """Return every pattern by which the rules read a clause."""
    modules = (extractor, phrases, grammar, withdrawals, dates)
    alone = [value for module in modules for value in vars(module).values() if isinstance(value, re.Pattern)]
    tables = (grammar._OF_SENTENCE, grammar._DATED_OF_SUBJECT, grammar._DATED_OF_SENTENCE)
    return [*alone, *(pattern for table in tables for pattern, _, _ in table)]


@pytest.mark.parametrize("pattern", grammar_patterns(), ids=lambda pattern: pattern.pattern[:30])
def test_no_sentence_of_the_parts_of_the_grammar_breaks_the_rules(pattern: re.Pattern[str]) -> None:
    texts = list(dict.fromkeys(examples(pattern)))
    combined = zip(texts, cycle(SUBJECTS), cycle(ENDS), cycle(STARTS), strict=False)
    around = zip(product([texts[0]], SUBJECTS, ENDS), cycle(STARTS), strict=False)
    pieces = [*combined, *((*parts, start) for parts, start in around)]
    sentences = [f"{start}{subject}{text}{end}" for text, subject, end, start in pieces]
    for sentence in sentences:
        assert isinstance(find_candidates(window(sentence)), list)


@pytest.mark.parametrize(
    "relation",
    [
        "wife",
        *(pytest.param(name, marks=pytest.mark.soak) for name in ("son", "dog", "daughter", "boss", "best friend")),
    ],
)
@pytest.mark.parametrize("verb", ["is called", "is named", "is", "'s name is", "has", ","])
@pytest.mark.parametrize("name", ["Zara", "zara", "Ana Maria", "7", "not Zara", "a b c d", ""])
def test_no_name_breaks_the_rules(relation: str, verb: str, name: str) -> None:
    for end in (*ENDS, ", not Sara", " not Sara", ", or Sara", ", Sara", " and not Sara", ", no longer Sara"):
        for start in (*STARTS, "No! "):
            sentence = f"{start}My {relation} {verb} {name}{end}.".replace(" '", "'").replace(" ,", ",")
            assert isinstance(find_candidates(window(sentence)), list)
