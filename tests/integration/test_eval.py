"""`afterword eval`: against the shared scoring tool figure by figure, against the README, and when things fail."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from afterword.evaluation.measurement import Evaluation, EvaluationRequest, measure_systems
from afterword.evaluation.report import BEGIN, END, scorecard
from afterword.evaluation.scenarios.saved_messages import saved_messages
from afterword.evaluation.scenarios.scenario import Scenario, Session, read_scenarios
from afterword.evaluation.scorer import Score, fact_json_for_scorers, score_facts, score_json, total_score
from afterword.evaluation.trial import EvaluatedSystem, run_trial
from afterword.extractors.readers import read_state
from afterword.extractors.rules import RulesExtractor, RulesJudge
from afterword.facts.fact import Fact, Status
from afterword.facts.transcripts import Turn
from afterword.settings import Settings
from commands import Commands
from scenarios import fact, moved, scenario, write

Json = dict[str, Any]
Stores = Mapping[str, Sequence[Fact]]

RECORDED = Path(__file__).parent.parent / "recorded" / "scenarios.jsonl"


@pytest.fixture(scope="module")
def open_scenarios(shared: Path) -> list[Scenario]:
    return read_scenarios([shared / "data" / "scenarios"])


@pytest.fixture(scope="module")
def recorded(shared: Path) -> Evaluation:
    """What `make scorecard` measures."""
    request = EvaluationRequest([shared / "data" / "scenarios"], replay=RECORDED)
    return asyncio.run(measure_systems(request, Settings()))


def scored_elsewhere(shared: Path, stores: Stores, folder: Path) -> Json:
    folder.mkdir()
    for name, facts in stores.items():
        (folder / f"{name}.json").write_text(json.dumps([fact_json_for_scorers(stored) for stored in facts]))
    tool = [sys.executable, str(shared / "tools" / "score_scenarios.py"), str(shared / "data" / "scenarios")]
    finished = subprocess.run([*tool, "--facts", str(folder), "--json"], check=True, capture_output=True, timeout=120)
    scores: Json = json.loads(finished.stdout)
    return scores


def assert_alike(theirs: Json, ours: Score) -> None:
    """Every figure and every list that the tool gives."""
    our_figures = score_json(ours)
    for name, value in theirs.items():
        if name == "lists":
            assert our_figures["misses"] == value
        elif name != "problems":
            assert our_figures[name] == value, name


def assert_agreed(shared: Path, scenarios: Sequence[Scenario], stores: Stores, folder: Path) -> None:
    theirs = scored_elsewhere(shared, stores, folder)
    scores = {known.id: score_facts(known, stores[known.id]) for known in scenarios}
    for name, ours in scores.items():
        assert_alike(theirs["scenarios"][name], ours)
    assert_alike(theirs["total"], total_score(scores.values()))


def test_every_system_is_scored_as_the_shared_tool_scores_it(
    recorded: Evaluation, open_scenarios: list[Scenario], shared: Path, tmp_path: Path
) -> None:
    assert [result.name for result in recorded.results] == ["recorded model", "offline rules", "every user turn"]
    for number, result in enumerate(recorded.results):
        assert_agreed(shared, open_scenarios, result.trial.facts, tmp_path / str(number))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (1, 2, 3))])
def test_invented_stores_are_scored_as_the_shared_tool_scores_them(
    open_scenarios: list[Scenario], shared: Path, tmp_path: Path, seed: int
) -> None:
    """Stores nobody would have: gold of any status, not-facts, two sentences in one, words that nobody said."""
    chance = random.Random(seed)
    stores = {known.id: invented(known, chance) for known in open_scenarios}
    assert_agreed(shared, open_scenarios, stores, tmp_path / "invented")


def invented(known: Scenario, chance: random.Random) -> list[Fact]:
    pool = [gold_fact.statement for gold_fact in known.gold.facts] + [
        gold_fact.statement for gold_fact in known.gold.not_facts
    ]
    said = [(session.session_id, message.content) for session in known.sessions for message in session.messages]
    facts = []
    for _ in range(chance.randrange(30)):
        statement = "\n".join(chance.sample(pool, chance.choice([1, 1, 2])))
        session_id, words = chance.choice([*said, ("nowhere", "what nobody said")])
        made = fact(statement, chance.choice(list(Status)), quote=words[:60], session_id=session_id)
        facts.append(replace(made, evidence=made.evidence * chance.choice([0, 1, 2])))
    return facts


def test_sessions_read_into_the_turns_of_the_states_that_the_shared_tool_writes(
    open_scenarios: list[Scenario], shared: Path, tmp_path: Path
) -> None:
    tool = [sys.executable, str(shared / "tools" / "scenario_states.py"), str(shared / "data" / "scenarios")]
    subprocess.run([*tool, "--out", str(tmp_path)], check=True, capture_output=True, timeout=120)
    for known in open_scenarios:
        for session in known.sessions:
            theirs = json.loads((tmp_path / known.id / known.user_id / f"{session.session_id}.json").read_text())
            ours = json.loads(json.dumps(saved_messages(session)))
            assert turns_read_from(ours, session) == turns_read_from(theirs, session), session.session_id


def turns_read_from(state: object, session: Session) -> list[Turn]:
    return [replace(turn, message_id=None) for turn in read_state(state, humans=session.humans).turns]


def test_the_readme_shows_what_the_command_prints(recorded: Evaluation, repository: Path) -> None:
    """`make scorecard` writes the block; whoever changes a figure runs it."""
    assert not recorded.has_failures
    readme = (repository / "README.md").read_text(encoding="utf-8")
    block = readme.partition(BEGIN)[2].partition(END)[0]
    assert block.strip() == scorecard(recorded).strip(), "run `make scorecard`"


async def test_the_gold_changes_nothing_that_is_stored(tmp_path: Path) -> None:
    """Only the scorer reads it: another gold, the same facts."""
    with_gold = moved()
    other = {**with_gold, "gold": {"facts": [], "not_facts": []}}
    stores = []
    for number, variant in enumerate((scenario(with_gold), scenario(other))):
        folder = tmp_path / str(number)
        folder.mkdir()
        trial = await run_trial([variant.story()], EvaluatedSystem("rules", RulesExtractor(), RulesJudge()), folder)
        stores.append([fact_json_for_scorers(fact) for fact in trial.facts["moved"]])
    assert stores[0] == stores[1] != []


async def test_two_scenarios_of_one_user_share_no_memory(tmp_path: Path) -> None:
    stories = [scenario(moved(name)).story() for name in ("first", "second")]
    trial = await run_trial(stories, EvaluatedSystem("rules", RulesExtractor(), RulesJudge()), tmp_path)
    exported = [[fact_json_for_scorers(fact) for fact in trial.facts[name]] for name in ("first", "second")]
    assert exported[0] == exported[1] != []


@pytest.mark.parametrize("order", ["file", "arrival", "shuffle"])
def test_the_command_scores_in_any_order(afterword: Commands, tmp_path: Path, order: str) -> None:
    folder = write(tmp_path / "scenarios", moved())
    evaluation = json.loads(afterword("eval", str(folder), "--order", order, "--seed", "3", "--json"))
    rules, turns = evaluation["systems"]
    assert (rules["name"], turns["name"]) == ("offline rules", "every user turn")
    assert rules["total"]["update_correct"] == {"n": 1, "of": 1, "share": 1.0}
    assert turns["total"]["update_correct"] == {"n": 0, "of": 1, "share": 0.0}
    assert turns["total"]["not_facts_by_why"] == {"hypothetical": {"n": 1, "of": 1}}
    assert turns["scenarios"]["moved"]["misses"]["stale"][0]["gold"] == "home-old"
    assert not list(tmp_path.glob("*.db")), "it works in a store of its own"


def test_facts_and_a_block_are_written(afterword: Commands, tmp_path: Path) -> None:
    folder = write(tmp_path / "scenarios", moved())
    (tmp_path / "NOTES.md").write_text(f"Ours\n{BEGIN}\n{END}\n")
    files = ["--save-facts", "facts", "--into", "NOTES.md"]
    printed = afterword("eval", str(folder), *files)
    assert (tmp_path / "NOTES.md").read_text() == f"Ours\n{BEGIN}\n{printed}{END}\n"
    facts = json.loads((tmp_path / "facts" / "moved.json").read_text())
    assert {stored["status"] for stored in facts} == {"current", "superseded"}


def test_what_a_model_never_answered_is_shown_and_lowers_the_recall(afterword: Commands, tmp_path: Path) -> None:
    """Nothing is recorded for these sessions: both fail, and the gold stays as large as it was."""
    folder = write(tmp_path / "scenarios", moved())
    (tmp_path / "replies.jsonl").write_text("")
    printed = afterword("eval", str(folder), "--replay", "replies.jsonl", expected=1)
    assert "FAILED in recorded model: session one of moved: EndpointMisconfigured" in printed
    assert "FAILED in recorded model: session two of moved: EndpointMisconfigured" in printed
    figures = {row[1].strip(): row[2].strip() for line in printed.splitlines() if len(row := line.split("|")) > 2}
    assert figures["fact recall"] == "0 of 3 (0.00)"
    assert figures["sessions that failed"] == "2 of 2"


@pytest.mark.parametrize(
    "arguments",
    [
        ["eval"],
        ["eval", "nowhere"],
        ["eval", "scenarios", "--into", "nowhere.md"],
        ["eval", "scenarios", "--into", "plain.md"],
        ["eval", "scenarios", "--replay", "nowhere.jsonl"],
        ["eval", "scenarios", "--replay", "plain.md"],
        ["eval", "scenarios", "--replay", "two.jsonl"],
        ["eval", "scenarios", "--replay", "plain.md", "--extractor", "rules"],
        ["eval", "scenarios", "--order", "sideways"],
    ],
)
def test_what_cannot_be_meant_is_usage(afterword: Commands, tmp_path: Path, arguments: list[str]) -> None:
    write(tmp_path / "scenarios", moved())
    (tmp_path / "plain.md").write_text("nothing here")
    lines = [json.dumps({"key": name, "reply": "{}", "model": name}) for name in ("one", "other")]
    (tmp_path / "two.jsonl").write_text("\n".join(lines))
    assert "Traceback" not in afterword(*arguments, expected=2)
