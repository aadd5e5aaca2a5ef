"""What the offline rules make of sentences and pairs that were written before them.

`tests/golden/rules/` holds 473 sentences with the facts that an honest reader keeps, and 256 pairs of statements with
what the second does to the first. The first grammar was written with the part `open` at hand; `unseen` was only
measured. The part `spoken` (120 sentences, 30 pairs) was written before the grammar of `rules-4`, by the author of that
change, who knew the rules and had read turns of LoCoMo; that grammar was written with it at hand.

`fresh_sentences.jsonl` and `fresh_pairs.jsonl` are by somebody who had not seen the rules: 300 sentences in seven
languages and 200 pairs. `right` lists the statements that were judged right by reading what the rules keep.
"""

from __future__ import annotations

import ast
import json
import re
import tokenize
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from afterword.extractors.candidates import Candidate
from afterword.extractors.extractor import Window
from afterword.extractors.grounding import ground
from afterword.extractors.rules import extractor
from afterword.extractors.rules.extractor import find_candidates
from afterword.extractors.slot_relation import relation_by_slot
from afterword.facts.assertions import Assertion, Relation, SpeechAct
from afterword.facts.knowledge import Knowledge
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, TimeBasis, Transcript, Turn
from afterword.facts.words import terms
from afterword.pipeline.resolution import required_pairs

GOLDEN = Path(__file__).parents[1] / "golden" / "rules"
RULES = Path(extractor.__file__).parent
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


def fresh(name: str) -> list[dict[str, Any]]:
    lines = (GOLDEN / f"fresh_{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return list(map(json.loads, lines))


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


def outcome_of(pair: dict[str, Any]) -> str:
    """Return what the second statement of a pair does to the first."""
    first, second = assertions(pair["first"], "s1", 1), assertions(pair["second"], "s2", 5)
    decided = [
        verdict[0]
        for earlier, later in required_pairs(second, Knowledge.of(1, [*first, *second], []))
        if earlier in first and later in second and (verdict := relation_by_slot(earlier, later))
    ]
    return "ends" if RETIRING & set(decided) else "same" if decided else "beside"


@parts
def test_a_statement_retires_what_it_ends_and_nothing_beside_it(part: str) -> None:
    outcomes: Counter[tuple[str, str]] = Counter()
    for pair in golden("pairs", part):
        outcomes[pair["relation"], outcome_of(pair)] += 1
    assert outcomes["beside", "ends"] == outcomes["same", "ends"] == outcomes["beside", "same"] == 0
    assert outcomes["ends", "ends"] / (outcomes["ends", "ends"] + outcomes["ends", "beside"]) >= 0.85
    assert outcomes["same", "same"] / (outcomes["same", "same"] + outcomes["same", "beside"]) >= 0.9


def test_what_is_kept_of_sentences_by_somebody_else_is_right() -> None:
    kept, right = Counter[str](), 0
    for sentence in fresh("sentences"):
        statements = [said.statement for said in assertions(sentence["text"], "s", 9)]
        kept[sentence["language"]] += len(statements)
        right += len([statement for statement in statements if statement in sentence.get("right", ())])
    assert right / kept.total() >= 0.95
    assert right >= 60
    assert kept.total() == kept["en"], "the rules read English only"


def test_nothing_is_stated_of_sentences_by_somebody_else_that_say_nothing_lasting() -> None:
    silent = [sentence["text"] for sentence in fresh("sentences") if not sentence["facts"]]
    stated = [text for text in silent if any(said.act is SpeechAct.STATE for said in assertions(text, "s", 9))]
    assert len(silent) == 107
    # It ends by itself on the day that it names. Elsewhere such a stay is what a reader keeps.
    assert stated == ["I'm staying at a hotel near the station until Thursday."]


def test_no_pair_by_somebody_else_retires_what_still_holds() -> None:
    outcomes = Counter((pair["retires_first"], outcome_of(pair)) for pair in fresh("pairs"))
    assert outcomes[False, "ends"] == outcomes[False, "same"] == outcomes[True, "same"] == 0
    assert outcomes[True, "ends"] >= 8


def test_the_rules_stay_small() -> None:
    assert sum(map(lines_of_code, RULES.glob("*.py"))) < 900


def lines_of_code(path: Path) -> int:
    """Return how many lines of a module hold code: no blank line, no comment, no docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = [node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    docstrings = [node.body[0] for node in documented if ast.get_docstring(node) is not None]
    in_docstrings = {line for each in docstrings for line in range(each.lineno, (each.end_lineno or 0) + 1)}
    without_code = (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    )
    with path.open("rb") as code:
        tokens = [token for token in tokenize.tokenize(code.readline) if token.type not in without_code]
    lines = {line for token in tokens[1:] for line in range(token.start[0], token.end[0] + 1)}
    return len(lines - in_docstrings)
