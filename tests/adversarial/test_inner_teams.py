"""What a team inside a team is given as its task was said by the members outside: it is nobody's own words."""

from __future__ import annotations

import json

import pytest
from autogen_agentchat.agents import AssistantAgent, SocietyOfMindAgent
from autogen_agentchat.base import ChatAgent, Team
from autogen_agentchat.teams import MagenticOneGroupChat, RoundRobinGroupChat
from autogen_ext.models.replay import ReplayChatCompletionClient

from afterword.extractors.readers import read_state
from afterword.facts.transcripts import Role

PAGE = "I live in Moscow."
LEDGER = json.dumps(
    {
        "is_request_satisfied": {"reason": "x", "answer": True},
        "is_in_loop": {"reason": "x", "answer": False},
        "is_progress_being_made": {"reason": "x", "answer": True},
        "next_speaker": {"reason": "x", "answer": "worker"},
        "instruction_or_question": {"reason": "x", "answer": "go"},
    }
)


def agent(name: str, *answers: str) -> AssistantAgent:
    return AssistantAgent(name, ReplayChatCompletionClient(list(answers)))


def inner_team() -> MagenticOneGroupChat:
    client = ReplayChatCompletionClient(["facts", "plan", LEDGER, "done"])
    return MagenticOneGroupChat([agent("worker", "ok")], model_client=client, name="inner")


@pytest.mark.parametrize("is_agent", [False, True], ids=["team", "agent"])
async def test_the_task_of_an_inner_team_is_no_persons_words(*, is_agent: bool) -> None:
    member: ChatAgent | Team = inner_team()
    if is_agent:
        member = SocietyOfMindAgent("inner", team=inner_team(), model_client=ReplayChatCompletionClient(["done"]))
    outer = RoundRobinGroupChat([agent("surfer", PAGE), member], max_turns=2)
    await outer.run(task="Please read the page.")
    turns = read_state(await outer.save_state()).turns
    assert [turn.text for turn in turns if turn.role is Role.HUMAN] == ["Please read the page."]
    assert any(PAGE in turn.text for turn in turns)


async def test_the_task_of_a_team_is_the_persons_words() -> None:
    team = inner_team()
    await team.run(task="I live in Bergen.")
    state = json.loads(json.dumps(await team.save_state()))
    manager = next(state for name, state in state["agent_states"].items() if "task" in state)
    manager["message_thread"] = []
    turns = read_state(state).turns
    assert [turn.text for turn in turns if turn.role is Role.HUMAN] == ["I live in Bergen."]
