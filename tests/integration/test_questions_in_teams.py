"""The block of an agent in a team is about what the person asked, whoever has spoken since."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import TextMessage
from autogen_agentchat.teams import MagenticOneGroupChat, RoundRobinGroupChat, SelectorGroupChat, Swarm
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, RequestUsage, UserMessage
from autogen_ext.models.replay import ReplayChatCompletionClient

from afterword import open as open_afterword
from afterword.agents.memory import FactMemory
from afterword.agents.placement import recall_queries
from afterword.facts.scopes import Scope
from afterword.store.database.engine import Store
from injected import CUSTOM, last_request

LENA = Scope.user("lena")
TURN = "By the way, our plumber Kallestad repaired the boiler in spring."
FACT = "The customer number of shop 077 is K0077."
QUESTION = "Who repaired our boiler, and what is the customer number of shop 077?"
LONG = " ".join(f"Aspect{number} of topic{number} elaborates paragraph{number}." for number in range(30))


def client(*replies: str | CreateResult) -> ReplayChatCompletionClient:
    return ReplayChatCompletionClient(list(replies), model_info={**CUSTOM, "json_output": True})


def member(
    name: str, model: ReplayChatCompletionClient, memory: FactMemory, handoffs: tuple[str, ...] = ()
) -> AssistantAgent:
    return AssistantAgent(name, model, memory=[memory], description=name, handoffs=[*handoffs] or None)


async def of_one_agent(memory: FactMemory, model: ReplayChatCompletionClient, words: str) -> None:
    agent = member("bob", model, memory)
    await agent.run(task=words)
    await agent.run(task=QUESTION)


async def of_a_round(memory: FactMemory, model: ReplayChatCompletionClient, words: str) -> None:
    team = RoundRobinGroupChat([member("alice", client(words), memory), member("bob", model, memory)], max_turns=2)
    await team.run(task=QUESTION)


async def of_a_named_person(memory: FactMemory, model: ReplayChatCompletionClient, words: str) -> None:
    team = RoundRobinGroupChat([member("alice", client(words), memory), member("bob", model, memory)], max_turns=2)
    await team.run(task=TextMessage(source="customer", content=QUESTION))


async def of_a_selection(memory: FactMemory, model: ReplayChatCompletionClient, words: str) -> None:
    agents = [member("alice", client(words), memory), member("bob", model, memory)]
    await SelectorGroupChat([*agents], client("alice", "bob"), max_turns=2).run(task=QUESTION)


async def of_a_swarm(memory: FactMemory, model: ReplayChatCompletionClient, words: str) -> None:
    call = FunctionCall(id="1", name="transfer_to_bob", arguments="{}")
    usage = RequestUsage(prompt_tokens=1, completion_tokens=1)
    handing_over = CreateResult(finish_reason="function_calls", content=[call], usage=usage, cached=False)
    agents = [member("alice", client(handing_over), memory, ("bob",)), member("bob", model, memory)]
    await Swarm([*agents], max_turns=2).run(task=QUESTION)


async def of_an_orchestrator(memory: FactMemory, model: ReplayChatCompletionClient, words: str) -> None:
    def ledger(is_done: bool) -> str:
        answers = {
            "is_request_satisfied": is_done,
            "is_in_loop": False,
            "is_progress_being_made": True,
            "next_speaker": "bob",
            "instruction_or_question": "Please answer the request.",
        }
        return json.dumps({name: {"reason": "so", "answer": answer} for name, answer in answers.items()})

    orchestrator = client(words, "the plan", ledger(False), ledger(False), ledger(True), "done")
    await MagenticOneGroupChat([member("bob", model, memory)], orchestrator).run(task=QUESTION)


@pytest.mark.parametrize("words", ["I pass this on.", LONG], ids=["short", "long"])
@pytest.mark.parametrize(
    "talk", [of_one_agent, of_a_round, of_a_named_person, of_a_selection, of_a_swarm, of_an_orchestrator]
)
async def test_each_agent_is_told_what_bears_on_the_persons_question(
    talk: Callable[[FactMemory, ReplayChatCompletionClient, str], Awaitable[None]], words: str, store: Store
) -> None:
    async with open_afterword(store=store) as app:
        lena = app.user("lena")
        for number in range(60, 100):
            await lena.remember(f"The customer number of shop {number:03d} is K{number:04d}.")
        agent = AssistantAgent("helper", client("fine"))
        async with lena.record(agent, session_id="before"):
            await agent.run(task=TURN)
        model = client("fine", "fine", "fine")
        await talk(lena.memory(budget_tokens=300), model, words)
    assert "Kallestad" in str(last_request(model))
    assert FACT in str(last_request(model))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([], ("", "")),
        ([("user", "One?")], ("One?", "One?")),
        ([("user", "One?"), ("alice", "Two.")], ("One?", "Two.")),
        ([("user", "Start."), ("Lena", "One?"), ("alice", "Two.")], ("One?", "Two.")),
        ([("customer", "One?"), ("alice", "Two.")], ("Two.", "One?")),
    ],
)
def test_the_question_is_what_a_person_said_last(said: list[tuple[str, str]], expected: tuple[str, str]) -> None:
    assert recall_queries([UserMessage(content=words, source=source) for source, words in said], LENA) == expected
