"""The questions of a scenario are asked of a real agent; replies are kept and played back; graders see no names."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from autogen_ext.models.replay import ReplayChatCompletionClient

from afterword.errors import ArgumentInvalid
from afterword.evaluation.asking import RecordedReplies, ask_scenarios, write_grading_pages
from afterword.evaluation.scenarios.scenario import Question, Scenario, read_scenarios
from afterword.evaluation.trial import EvaluatedSystem, run_trial, story_scopes
from afterword.extractors.rules import RulesExtractor, RulesJudge
from afterword.store.database.engine import Store


async def processed(shared: Path, folder: Path) -> Scenario:
    [scenario] = read_scenarios([shared / "data" / "scenarios" / "city-trips-lena.json"])
    await run_trial([scenario.story()], EvaluatedSystem("rules", RulesExtractor(), RulesJudge()), folder)
    return scenario


async def test_every_system_is_asked_and_replies_play_back(shared: Path, tmp_path: Path) -> None:
    scenario = await processed(shared, tmp_path)
    scopes, replies = story_scopes([scenario]), tmp_path / "replies.jsonl"
    count = 3 * len(scenario.gold.questions)
    model = ReplayChatCompletionClient([f"**Answer** {number}" for number in range(count)])
    async with Store(f"sqlite:///{tmp_path / 'afterword.db'}") as store:
        answers = await ask_scenarios([scenario], scopes, store, RecordedReplies(replies, model))
        again = await ask_scenarios([scenario], scopes, store, RecordedReplies(replies, None))
        with pytest.raises(ArgumentInvalid):
            await RecordedReplies(tmp_path / "none.jsonl", None).recorded_or_new_reply([])
    assert answers == again
    assert len(answers) == count
    told = Counter[str]()
    for answer in answers:
        told[answer.system] += answer.tokens_told
    assert told["history"] > told["memory"] > told["nothing"]
    write_grading_pages(answers, tmp_path / "asked")
    pages = (tmp_path / "asked" / "pages.md").read_text(encoding="utf-8")
    assert "**" not in pages
    assert "memory:" not in pages
    key = json.loads((tmp_path / "asked" / "key.json").read_text(encoding="utf-8"))
    assert all(sorted(letters.values()) == ["history", "memory", "nothing"] for letters in key.values())


async def test_a_question_without_content_words_finds_no_turns(shared: Path, tmp_path: Path) -> None:
    scenario = await processed(shared, tmp_path)
    gold = scenario.gold.model_copy(update={"questions": [Question(question="What should you do?", answer="nothing")]})
    asked = scenario.model_copy(update={"gold": gold})
    replies = RecordedReplies(tmp_path / "replies.jsonl", ReplayChatCompletionClient(["I do not know."] * 2))
    async with Store(f"sqlite:///{tmp_path / 'afterword.db'}") as store:
        turns, nothing = await ask_scenarios(
            [asked], story_scopes([asked]), store, replies, systems=["turns", "nothing"]
        )
    assert turns.tokens_told == nothing.tokens_told
