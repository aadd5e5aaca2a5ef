"""How well is what answers a question found? Evidence recall on the open data, without a model, key or network.

    python benchmarks/recall_quality.py [--ablate] [--out benchmarks/recall_quality.md]

LoCoMo without category 5: the turns that answer a question among all turns, and in a mixed list of facts and turns
within a token budget (a fact counts as the turns it rests on). BEAM: the messages of the user. The settings were
chosen on conversations 26, 30 and 41; 42 and 43 were held back. The scenario questions: is every needed fact in the
block at 600 tokens, with the gold facts as the store? The data is read by path (AFTERWORD_BENCH_DATA, AFTERWORD_SHARED)
and never copied. The lines "with vectors" need the extra `afterword[local]`.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from afterword.store.embedding import LocalEmbedder, Vectors
from afterword.store.ranking import Index, Unit, Weights, said_once

SHARED = Path(os.environ.get("AFTERWORD_SHARED", Path(__file__).parent.parent.parent / "shared"))
DATA = Path(os.environ.get("AFTERWORD_BENCH_DATA", SHARED / "data/benchmarks"))
CHOSEN_ON = frozenset({"conv-26", "conv-30", "conv-41"})
FACT_CATEGORIES = frozenset(
    {"information_extraction", "knowledge_update", "contradiction_resolution", "preference_following"}
)
BUDGETS = (250, 500, 1000, 2000)
Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the ids of the turns that answer it."""

    text: str
    evidence: frozenset[str]


@dataclass(slots=True)
class Conversation:
    """One conversation: its turns, the facts that were taken from it, and the questions."""

    name: str
    turns: list[Unit]
    facts: list[Unit]
    asked: list[Asked]
    texts: dict[str, str]


def lines(path: Path) -> list[Values]:
    """Return the JSON objects of a file, one a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def conversations(folder: Path, *, speakers: bool, wanted: Callable[[Values], bool]) -> list[Conversation]:
    """Return the conversations of one data set, with the questions that are wanted and have evidence.

    With `speakers` both sides are people; else only the user's messages can be found.
    """
    found: dict[str, Conversation] = {}
    days: dict[tuple[str, int], str] = {}
    for session in lines(folder / "sessions.jsonl"):
        kept = found.setdefault(session["conv"], Conversation(session["conv"], [], [], [], {}))
        day = days[session["conv"], session["session"]] = str(session["when"]).split(" on ")[-1].replace("-", " ")
        for number, message in enumerate(session["messages"], 1):
            if message["role"] == "user":
                kept.turns.append(_turn(message, number, str(session["session"]), day, speakers=speakers))
                kept.texts[message["id"]] = f"- {day} {message['source']}: {message['text']}"
    if (folder / "facts.jsonl").exists():
        for number, fact in enumerate(lines(folder / "facts.jsonl")):
            kept = found[fact["conv"]]
            day = days[fact["conv"], fact["session"]]
            kept.facts.append(_fact(f"fact-{number}", fact, day, kept.turns))
            kept.texts[f"fact-{number}"] = f"- {fact['text']}"
    for question in lines(folder / "questions.jsonl"):
        kept = found[question["conv"]]
        evidence = frozenset(question["evidence_messages"] or ()) & kept.texts.keys()
        if evidence and wanted(question):
            kept.asked.append(Asked(question["text"], evidence))
    return list(found.values())


def _turn(message: Values, number: int, session: str, day: str, *, speakers: bool) -> Unit:
    name = message["source"] if speakers else ""
    text = f"{day} {name} {message['text']}"
    return Unit(message["id"], text, name, session, number, asks=speakers and "?" in message["text"])


def _fact(number: str, fact: Values, day: str, turns: Sequence[Unit]) -> Unit:
    people = {turn.name for turn in turns}
    about = " ".join(sorted(name for name in people if name in fact["text"]))
    return Unit(number, f"{day} {fact['text']}", about, sources=tuple(fact["evidence"] or ()))


def vectors(units: Sequence[Unit], local: LocalEmbedder | None) -> Vectors | None:
    """Return the vectors of the units, None without the extra."""
    return Vectors(asyncio.run(local.embed([unit.text for unit in units]))) if local else None


Ranked = list[list[tuple[Unit, float]]]


def answers(one: Conversation, units: Sequence[Unit], local: LocalEmbedder | None, weights: Weights) -> Ranked:
    """Return the ranked units for each question of a conversation."""
    index, known = Index(units), vectors(units, local)
    near = asyncio.run(local.embed([asked.text for asked in one.asked])) if local else []
    meant = [known.near(vector) for vector in near] if known else [None] * len(one.asked)
    return [
        index.ranked(asked.text, meaning=meaning, weights=weights)
        for asked, meaning in zip(one.asked, meant, strict=True)
    ]


def recall_at(ranked: Ranked, one: Conversation, limit: int) -> list[float]:
    """Return, for each question, the share of its evidence among the first `limit` units."""
    return [
        len(asked.evidence & {unit.id for unit, _ in found[:limit]}) / len(asked.evidence)
        for asked, found in zip(one.asked, ranked, strict=True)
    ]


def recall_within(ranked: Ranked, one: Conversation, budget: int, cost: Callable[[str], float]) -> list[float]:
    """Return, for each question, the share of its evidence in what fits the budget, taken in order."""
    shares = []
    for asked, found in zip(one.asked, ranked, strict=True):
        room, told = float(budget), set[str]()
        for unit, _ in said_once(found):
            price = cost(one.texts[unit.id] + "\n")
            if price <= room:
                room -= price
                told.update(unit.sources or (unit.id,))
        shares.append(len(asked.evidence & told) / len(asked.evidence))
    return shares


def quarter(text: str) -> float:
    """Return the tokens of English text as most tokenizers count them: a quarter of its letters."""
    return len(text) / 4
