"""LoCoMo end to end: extraction, block, answer, and pages for blind graders.

    python benchmarks/locomo.py FOLDER --conversation conv-30 [--questions 40] [--seed 0] [--told mem0=FILE]
    python benchmarks/locomo.py FOLDER --conversation conv-30 --evidence

A conversation of two people is processed by the configured model, with the words of both told. Then questions without
category 5 are asked of an agent with this memory, with plain BM25 of turns in as many tokens, and with the whole
history. FOLDER gets the store, the replies of the model, `answers.json`, and `pages.md` with `key.json` for graders.
A second run goes on where the first one stopped. `--write FILE` only writes the conversation and the questions, for the
scripts of other memories in `benchmarks/peers`; `--told NAME=FILE` asks with the first lines of what such a memory
tells, as far as the budget reaches. `--evidence` asks no model: it prints which share of the turns that LoCoMo names as
evidence is told for all questions, as a turn or as a fact that rests on it. The data is read by path
(AFTERWORD_BENCH_DATA) and never copied. LoCoMo is public: a model may know it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from afterword import settings
from afterword.composition import embedder, open_extractor_and_judge
from afterword.evaluation.asking import RecordedReplies, ask_scenarios, write_grading_pages
from afterword.evaluation.measurement import answering_model
from afterword.evaluation.scenarios.scenario import Gold, Message, Question, Scenario, Session
from afterword.evaluation.trial import EvaluatedSystem, run_trial, story_scopes
from afterword.recall.layers import Layers
from afterword.recall.tokens import estimated_token_count
from afterword.store.database.engine import Store
from afterword.store.reading.recall import Recall, recall
from afterword.store.reading.scope_vectors import refresh_vectors

SHARED = Path(os.environ.get("AFTERWORD_TEST_SHARED", Path(__file__).parent.parent.parent / "shared"))
DATA = Path(os.environ.get("AFTERWORD_BENCH_DATA", SHARED / "data/benchmarks"))


def rows(name: str, conversation: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file of LoCoMo that belong to a conversation."""
    for line in (DATA / "locomo" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["conv"] == conversation:
            yield row


def session(row: dict[str, Any]) -> Session:
    """Return a session with a minute for each message."""
    begun = datetime.strptime(row["when"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    messages = [
        Message(role="user", source=said["source"], content=said["text"], at=begun + timedelta(minutes=minute))
        for minute, said in enumerate(row["messages"])
    ]
    return Session(
        session_id=f"{row['conv']}-{row['session']:02}",
        started_at=begun,
        ended_at=begun + timedelta(minutes=len(messages)),
        container="assistant",
        messages=messages,
    )


def scenario(conversation: str, count: int, seed: int) -> Scenario:
    """Return a conversation as a scenario without gold facts, and a sample of its questions."""
    questions = [
        Question(question=row["text"], answer=str(row["answer"]))
        for row in rows("questions", conversation)
        if row["category"] != "adversarial"
    ]
    sample = random.Random(seed).sample(questions, min(count, len(questions)))
    sessions = [session(row) for row in rows("sessions", conversation)]
    owner = sessions[0].messages[0].source
    gold = Gold(facts=[], not_facts=[], questions=sample)
    return Scenario(id=conversation, user_id=owner.lower(), sessions=sessions, gold=gold)


def written(asked: Scenario, budget_tokens: int) -> str:
    """Return the conversation and its questions as JSON for other memories."""
    sessions = [
        {
            "day": session.started_at.date().isoformat(),
            "messages": [{"source": said.source, "content": said.content} for said in session.messages],
        }
        for session in asked.sessions
    ]
    questions = [question.question for question in asked.gold.questions]
    user, budget = asked.user_id, budget_tokens
    return json.dumps({"user": user, "budget_tokens": budget, "sessions": sessions, "questions": questions}, indent=1)


def within(text: str, budget_tokens: int) -> str:
    """Return the first lines of a text, as far as the tokens reach."""
    lines = text.splitlines()
    while lines and estimated_token_count("\n".join(lines)) > budget_tokens:
        lines.pop()
    return "\n".join(lines)


async def measure(folder: Path, asked: Scenario, told: dict[str, dict[str, str]], *, seed: int) -> None:
    """Process the conversation, unless that was done before, ask the questions, and write the answers."""
    configured = settings.load()
    done = folder / "processed"
    if not done.exists():
        async with open_extractor_and_judge("model", configured.model) as workers:
            trial = await run_trial([asked.story()], EvaluatedSystem("model", workers.extractor, workers.judge), folder)
        for _, failure in trial.failures:
            raise SystemExit(f"{failure.session_id}: {failure.reason}")
        done.touch()
    replies = RecordedReplies(folder / "replies.jsonl", answering_model(configured.model))
    recalling = configured.recall.model_copy(update={"other_people": True})
    privacy = configured.model_copy(update={"recall": recalling}).privacy_of_store()
    async with Store(f"sqlite:///{folder / 'afterword.db'}", privacy=privacy) as store:
        answers = await ask_scenarios(
            [asked],
            story_scopes([asked]),
            store,
            replies,
            systems=("memory", "turns", "history"),
            other_memories=told,
            budget_tokens=configured.recall.budget_tokens,
        )
    write_grading_pages(answers, folder, seed=seed)
    for system in ("memory", "turns", "history", *told):
        tokens = [answer.tokens_told for answer in answers if answer.system == system]
        sys.stdout.write(f"{system}: {round(sum(tokens) / len(tokens))} tokens a question\n")


async def evidence_told(folder: Path, asked: Scenario) -> dict[str, float]:
    """Return the mean share of the evidence that the memory tells, by category of question and of all questions.

    The conversation must be in the folder's store.
    """
    configured = settings.load()
    recalling = configured.recall.model_copy(update={"other_people": True})
    privacy = configured.model_copy(update={"recall": recalling}).privacy_of_store()
    turns = {
        message["id"]: (session(row).session_id, number)
        for row in rows("sessions", asked.id)
        for number, message in enumerate(row["messages"], 1)
    }
    at = max(session.ended_at for session in asked.sessions) + timedelta(hours=1)
    shares: dict[str, list[float]] = {}
    vectors = embedder(configured.embedding)
    async with Store(f"sqlite:///{folder / 'afterword.db'}", privacy=privacy) as store:
        scope = story_scopes([asked])[asked.id]
        if vectors is not None:
            await refresh_vectors(store, scope, vectors, at=at)
        for question in rows("questions", asked.id):
            evidence = [turns[name] for name in question["evidence_messages"] or () if name in turns]
            if evidence and question["category"] != "adversarial":
                budget = configured.recall.budget_tokens
                recalled = await recall(store, scope, question["text"], at=at, budget_tokens=budget, embedder=vectors)
                told = told_turns(recalled)
                share = sum(turn in told for turn in evidence) / len(evidence)
                for name in (question["category"], "all"):
                    shares.setdefault(name, []).append(share)
    return {name: sum(each) / len(each) for name, each in sorted(shares.items())}


def told_turns(recalled: Recall) -> set[tuple[str, int]]:
    """Return the turns that are told, and those on which the told facts rest."""
    layers = recalled.layers or Layers("")
    said = [turn for said in layers.turns for turn in (said.turn, said.context) if turn is not None]
    facts = [*layers.facts, *(former.fact for former in layers.former_facts)]
    resting = [
        (cited.session_id, cited.turn)
        for fact in facts
        for cited in fact.evidence
        if cited.session_id is not None and cited.turn is not None
    ]
    return {*((turn.session_id, turn.number) for turn in said), *resting}


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--conversation", default="conv-30")
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--told", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--evidence", action="store_true")
    arguments = parser.parse_args()
    asked = scenario(arguments.conversation, arguments.questions, arguments.seed)
    if arguments.write:
        arguments.write.write_text(written(asked, settings.load().recall.budget_tokens), encoding="utf-8")
        return
    if arguments.evidence:
        for name, share in asyncio.run(evidence_told(arguments.folder, asked)).items():
            sys.stdout.write(f"{name}: {share:.3f}\n")
        return
    arguments.folder.mkdir(parents=True, exist_ok=True)
    told = {}
    for name, _, file in (pair.partition("=") for pair in arguments.told):
        texts = json.loads(Path(file).read_text(encoding="utf-8"))
        budget_tokens = settings.load().recall.budget_tokens
        told[name] = {question: within(text, budget_tokens) for question, text in texts.items()}
    asyncio.run(measure(arguments.folder, asked, told, seed=arguments.seed))


if __name__ == "__main__":
    main()
