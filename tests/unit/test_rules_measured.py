"""What the offline rules make of sentences and pairs that were written before them.

`tests/golden/rules/` holds 473 sentences with the facts that an honest reader keeps, and 256 pairs of statements with
what the second does to the first. The first grammar was written with the part `open` at hand; `unseen` was only
measured. The part `spoken` (120 sentences, 30 pairs) was written before the grammar of `rules-4`, by the author of that
change, who knew the rules and had read turns of LoCoMo; that grammar was written with it at hand.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from afterword.extractors.candidates import Candidate
from afterword.extractors.extractor import Window
from afterword.extractors.grounding import ground
from afterword.extractors.rules.extractor import find_candidates
from afterword.extractors.slot_relation import relation
from afterword.facts.assertions import Assertion, Relation, SpeechAct
from afterword.facts.knowledge import Knowledge
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, TimeBasis, Transcript, Turn
from afterword.facts.words import terms
from afterword.pipeline.resolution import required_pairs

GOLDEN = Path(__file__).parents[1] / "golden" / "rules"
DENIAL = re.compile(r"\b(?:not|no|never|cannot|hates?|dislikes?|against|hardly)\b")
RETIRING = {Relation.CHANGES, Relation.RETRACTS, Relation.CORRECTS}
parts = pytest.mark.parametrize("part", ["open", "unseen", "spoken"])


def golden(name: str, part: str) -> list[dict[str, Any]]:
    lines = (GOLDEN / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [entry for line in lines if (entry := json.loads(line))["half"] == part]


def assertions(text: str, session_id: str, day: int) -> tuple[Assertion, ...]:
    turn = Turn(1, "user", Role.HUMAN, text, datetime(2026, 3, day, 8, tzinfo=UTC))
    transcript = Transcript((turn,), "test", ("user",), time_basis=TimeBasis.TURNS)
    grounded = ground(read(turn), transcript, scope=Scope.user("ada"), session_id=session_id, owners=("user",))
    assert grounded.rejections == ()
    return grounded.assertions


def read(turn: Turn) -> list[Candidate]:
    return find_candidates(Window(1, (turn,), (), ("user",), ("user",)))


def is_right(candidate: Assertion, fact: dict[str, Any]) -> bool:
    """Whether a candidate has all words that the fact needs, and affirms or denies as it does."""
    words = set(terms(f"{candidate.statement} {candidate.attribute} {candidate.value}"))
    is_denied = candidate.act is not SpeechAct.STATE or bool(DENIAL.search(candidate.statement))
    return set(terms(" ".join(fact["words"]))) <= words and is_denied == fact["negative"]


@parts
def test_what_is_kept_is_right_and_most_plain_sentences_are_read(part: str) -> None:
    right = kept = wanted = found = 0
    for sentence in golden("sentences", part):
        candidates = [one for one in assertions(sentence["text"], "s", 9) if one.attribute != "relation"]
        named = [one for one in assertions(sentence["text"], "s", 9) if one.attribute == "relation"]
        kept += len(candidates)
        right += sum(any(is_right(candidate, fact) for fact in sentence["facts"]) for candidate in candidates)
        wanted += len(sentence["facts"])
        found += sum(
            any(is_right(candidate, fact) for candidate in (*candidates, *named)) for fact in sentence["facts"]
        )
    assert right / kept >= 0.95
    assert found / wanted >= 0.65


@parts
def test_nothing_is_kept_of_questions_jokes_reports_and_quotations(part: str) -> None:
    silent = [sentence["text"] for sentence in golden("sentences", part) if not sentence["facts"]]
    assert [text for text in silent if assertions(text, "s", 9)] == []


@parts
def test_a_statement_retires_what_it_ends_and_nothing_beside_it(part: str) -> None:
    outcomes: Counter[tuple[str, str]] = Counter()
    for pair in golden("pairs", part):
        first, second = assertions(pair["first"], "s1", 1), assertions(pair["second"], "s2", 5)
        decided = [
            verdict[0]
            for earlier, later in required_pairs(second, Knowledge.of(1, [*first, *second], []))
            if earlier in first and later in second and (verdict := relation(earlier, later))
        ]
        outcome = "ends" if RETIRING & set(decided) else "same" if decided else "beside"
        outcomes[pair["relation"], outcome] += 1
    assert outcomes["beside", "ends"] == outcomes["same", "ends"] == outcomes["beside", "same"] == 0
    assert outcomes["ends", "ends"] / (outcomes["ends", "ends"] + outcomes["ends", "beside"]) >= 0.85
    assert outcomes["same", "same"] / (outcomes["same", "same"] + outcomes["same", "beside"]) >= 0.9
