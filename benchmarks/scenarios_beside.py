"""The questions of the scenarios, asked of an agent that another memory tells what it knows.

    python benchmarks/scenarios_beside.py SCENARIOS FOLDER --write
    python benchmarks/scenarios_beside.py SCENARIOS FOLDER --name mem0

`--write` writes a conversation for each scenario, FOLDER/SCENARIO/conversation.json, for the scripts in
`benchmarks/peers`. These write FOLDER/SCENARIO/told.json. Then the configured model is asked with the first lines of
what was told, as far as the budget reaches. FOLDER gets the replies, `answers.json`, and `pages.md` with `key.json`
for graders. `afterword eval --ask` asks the same questions of an agent with afterword's memory. A question about an
earlier day is answered from the sessions up to that day.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from locomo import within

from afterword import settings
from afterword.evaluation.asking import RecordedReplies, ask_scenarios, write_grading_pages
from afterword.evaluation.measurement import answering_model
from afterword.evaluation.scenarios.scenario import Scenario, read_scenarios
from afterword.evaluation.trial import story_scopes
from afterword.store.database.engine import Store

SPOKEN = ("user", "assistant")


def noon_of(day: str) -> datetime:
    """Return when a question about an earlier day is asked."""
    return datetime.fromisoformat(day).replace(hour=12, tzinfo=UTC)


def written(scenario: Scenario) -> str:
    """Return a scenario as JSON for other memories: its sessions, its questions, and after which session each is."""
    sessions = [
        {
            "day": session.started_at.date().isoformat(),
            "messages": [
                {"role": said.role, "source": said.source or said.role, "content": said.content}
                for said in session.messages
                if said.role in SPOKEN and said.content
            ],
        }
        for session in scenario.sessions
    ]
    after = {
        question.question: sum(session.started_at <= noon_of(question.as_of) for session in scenario.sessions)
        for question in scenario.gold.questions
        if question.as_of
    }
    questions = [question.question for question in scenario.gold.questions]
    budget = settings.load().recall.budget_tokens
    told = {"user": scenario.user_id, "budget_tokens": budget, "questions": questions, "after": after}
    return json.dumps({**told, "sessions": sessions}, indent=1, ensure_ascii=False)


async def ask(scenarios: list[Scenario], folder: Path, name: str) -> None:
    """Ask every question, and write the answers and the pages for graders."""
    configured = settings.load()
    budget = configured.recall.budget_tokens
    told: dict[str, str] = {}
    for scenario in scenarios:
        texts = json.loads((folder / scenario.id / "told.json").read_text(encoding="utf-8"))
        told |= {question: within(text, budget) for question, text in texts.items()}
    replies = RecordedReplies(folder / "replies.jsonl", answering_model(configured.model))
    async with Store(f"sqlite:///{folder / 'empty.db'}") as store:
        scopes = story_scopes([scenario.story() for scenario in scenarios])
        answers = await ask_scenarios(scenarios, scopes, store, replies, systems=(), other_memories={name: told})
    write_grading_pages(answers, folder)
    tokens = [answer.tokens_told for answer in answers]
    sys.stdout.write(f"{name}: {round(sum(tokens) / len(tokens))} tokens a question\n")


def main() -> None:
    """Read the arguments, and write the conversations or ask."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--name", default="mem0")
    arguments = parser.parse_args()
    scenarios = list(read_scenarios([arguments.scenarios]))
    if not arguments.write:
        asyncio.run(ask(scenarios, arguments.folder, arguments.name))
        return
    for scenario in scenarios:
        (arguments.folder / scenario.id).mkdir(parents=True, exist_ok=True)
        path = arguments.folder / scenario.id / "conversation.json"
        path.write_text(written(scenario), encoding="utf-8")


if __name__ == "__main__":
    main()
