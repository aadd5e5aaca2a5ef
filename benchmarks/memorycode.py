"""MemoryCode, the open half: do changing instructions end in the right state?

    python benchmarks/memorycode.py --base-url http://127.0.0.1:8765/v1 --model NAME [--out benchmarks/memorycode.md]
    python benchmarks/memorycode.py --recorded tests/recorded/memorycode.jsonl

Each instruction is a candidate as it stands, without the slot that the data knows; a model judges how the instructions
of one dialogue relate. A slot's end state is right where the last instruction of it is served and no former one is. The
data is read by path (AFTERWORD_BENCH_DATA, else ../shared/data/benchmarks beside the checkout) and never copied.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.extractor import Window
from afterword.extractors.model.client import ModelClient, ModelSettings
from afterword.extractors.model.judge import ModelJudge
from afterword.extractors.testing import OracleExtractor, ScriptedEndpoint, replayed
from afterword.facts.assertions import Kind
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import Failure, run_batch
from afterword.pipeline.intake import Saved
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.store import lookup
from afterword.store.database.engine import Store

DATA = Path(os.environ.get("AFTERWORD_BENCH_DATA", Path(__file__).parent.parent.parent / "shared/data/benchmarks"))
FIRST_DAY = datetime(2026, 1, 5, 9, tzinfo=UTC)

Instruction = dict[str, Any]


def instructions() -> dict[str, list[Instruction]]:
    """Return the instructions of each dialogue, about code and about work, in the order in which they were given."""
    found: dict[str, list[Instruction]] = defaultdict(list)
    for line in (DATA / "memorycode" / "facts.jsonl").read_text(encoding="utf-8").splitlines():
        fact = json.loads(line)
        if fact["kind"] in ("coding-instruction", "filler-instruction"):
            found[fact["conv"]].append(fact)
    return dict(found)


def saved(conv: str, given: Sequence[Instruction]) -> list[Saved]:
    """Return a dialogue's sessions, a day each, in which the instructions are said word for word."""
    by_session: dict[int, list[str]] = defaultdict(list)
    for one in given:
        by_session[one["session"]].append(one["text"])
    sessions = []
    for number, texts in sorted(by_session.items()):
        messages = [{"content": text, "source": "user", "type": "UserMessage"} for text in texts]
        state = {"type": "AssistantAgentState", "llm_context": {"messages": messages}}
        at = FIRST_DAY + timedelta(days=number)
        sessions.append(Saved(Scope.user(conv), f"{conv}-{number:03d}", state=state, started_at=at, ended_at=at))
    return sessions


def as_candidates(window: Window) -> list[Candidate]:
    """Return every turn as one instruction, all in one slot: what belongs together is for the judge to say."""
    return [
        Candidate(
            kind=Kind.PREFERENCE,
            subject="user",
            attribute="instruction",
            value=turn.text[:200],
            statement=f"The user is told: {turn.text}",
            evidence=[Citation(turn=turn.number, quote=turn.text)],
        )
        for turn in window.turns
    ]


async def measure(base_url: str, model: str, store: Store) -> list[SessionOutcome]:
    """Process every dialogue and return the outcomes."""
    found = [one for conv, given in instructions().items() for one in saved(conv, given)]
    settings = ModelSettings(
        model, base_url=base_url, api_key=os.environ.get("OPENAI_API_KEY", "local"), timeout_s=3600
    )
    async with ModelClient(settings) as client:
        ended = await run_batch(
            store, found, extractor=OracleExtractor(as_candidates, version="as-given"), judge=ModelJudge(client)
        )
    failed = [one for one in ended if isinstance(one, Failure)]
    if failed:
        raise SystemExit(f"{len(failed)} sessions failed; the first: {failed[0].reason}")
    return [one for one in ended if isinstance(one, SessionOutcome)]


async def score(store: Store) -> dict[str, list[int]]:
    """Return [right, of] for slots, for slots that were updated, and for dialogues with every slot right."""
    tally = {"slots": [0, 0], "updated slots": [0, 0], "updates": [0, 0], "dialogues": [0, 0]}
    for conv, given in instructions().items():
        with store.reading() as db:
            facts = lookup.read_facts(db, Scope.user(conv), at=datetime(2030, 1, 1, tzinfo=UTC))
        served = {fact.statement.partition(": ")[2] for fact in facts if fact.is_served}
        slots: dict[str, list[str]] = defaultdict(list)
        for one in given:
            slots[one["slot"]].append(one["text"])
        right = {
            slot: texts[-1] in served and not set(texts[:-1]) - {texts[-1]} & served for slot, texts in slots.items()
        }
        for slot, texts in slots.items():
            for name in ("slots", "updated slots") if len(texts) > 1 else ("slots",):
                tally[name][0] += right[slot]
                tally[name][1] += 1
        updates = [(slots[one["slot"]], one["text"]) for one in given if one["op"] == "UPDATE"]
        tally["updates"][0] += sum(_is_right(texts, text, served) for texts, text in updates)
        tally["updates"][1] += len(updates)
        tally["dialogues"][0] += all(right.values())
        tally["dialogues"][1] += 1
    return tally


def _is_right(texts: list[str], text: str, served: set[str]) -> bool:
    """Whether an update did its work: it is served if it is the slot's last, and what came before it is not."""
    before = set(texts[: texts.index(text)]) - {texts[-1]}
    return not before & served and (text in served) == (text == texts[-1])


def report(tally: dict[str, list[int]], ended: Sequence[SessionOutcome], model: str) -> str:
    """Return the result as Markdown."""
    calls = sum(one.usage.calls for one in ended)
    tokens = sum(one.usage.prompt_tokens for one in ended)
    rows = [f"| {name} | {right} of {of} | {right / of:.3f} |" for name, (right, of) in tally.items() if of]
    head = ["# MemoryCode, open half", "", f"Model: {model}. Command: see `benchmarks/memorycode.py`.", ""]
    cost = f"{calls} calls of the judge over {len(ended)} sessions, {tokens / max(calls, 1):.0f} prompt tokens a call."
    return "\n".join([*head, "| end state right | count | share |", "|---|---|---|", *rows, "", cost, ""])


async def main() -> None:
    """Run the benchmark and print (and write) its report."""
    parser = argparse.ArgumentParser(description="MemoryCode: the end state of changing instructions.")
    parser.add_argument("--base-url")
    parser.add_argument("--model", default="relay")
    parser.add_argument("--recorded", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    endpoint = ScriptedEndpoint(replayed(options.recorded)) if options.recorded else nullcontext()
    with tempfile.TemporaryDirectory() as folder:
        async with Store(f"sqlite:///{folder}/afterword.db") as store:
            await store.migrate()
            async with endpoint as opened:
                base_url = opened.base_url if opened is not None else options.base_url
                ended = await measure(base_url, options.model, store)
            told = report(await score(store), ended, options.model)
    print(told)  # noqa: T201 - a benchmark prints its result
    if options.out:
        options.out.write_text(told, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
