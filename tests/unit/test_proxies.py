"""A user proxy is a person, whatever its name."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from autogen_agentchat.agents import AssistantAgent, BaseChatAgent, UserProxyAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.replay import ReplayChatCompletionClient

from afterword.agents.live_agents import user_proxy_names
from afterword.extractors.readers import read_state
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import find_owners


def test_the_proxies_of_a_team_are_people() -> None:
    assistant = AssistantAgent("helper", ReplayChatCompletionClient([]))
    inner = RoundRobinGroupChat([UserProxyAgent("anna")])
    team = RoundRobinGroupChat([assistant, UserProxyAgent("customer"), inner])
    assert list(user_proxy_names(team)) == ["customer", "anna"]
    assert list(user_proxy_names(assistant)) == []
    assert list(user_proxy_names(UserProxyAgent("customer"))) == ["customer"]


async def test_a_saved_team_says_that_a_member_may_be_a_person() -> None:
    assistant = AssistantAgent("helper", ReplayChatCompletionClient(["Where do you live?", "Thank you."]))
    customer = UserProxyAgent("customer", input_func=lambda _: "I live in Bergen.")
    team = RoundRobinGroupChat([assistant, customer], max_turns=2)
    await team.run(task="Please update the address.")
    state = await team.save_state()
    assert read_state(state).humans == ("user",)
    assert read_state(state).skipped == {"may be a person's": 1}
    assert read_state(state, humans=["customer"]).skipped == {}
    assert read_state(state, humans=["customer"]).humans == ("user", "customer")


async def saved_team(member: BaseChatAgent, *, answers: Sequence[str] = ("Where do you live?", "Thank you.")) -> object:
    assistant = AssistantAgent("helper", ReplayChatCompletionClient(list(answers)))
    team = RoundRobinGroupChat([assistant, member], max_turns=2)
    await team.run(task="Please update the address.")
    return await team.save_state()


@pytest.mark.parametrize(("name", "user"), [("carmen", "carmen"), ("Carmen", "carmen"), ("carmen_ruiz", "carmen.ruiz")])
async def test_a_member_without_a_state_is_the_user_whose_name_it_has(name: str, user: str) -> None:
    state = await saved_team(UserProxyAgent(name, input_func=lambda _: "I live in Bergen."))
    transcript = read_state(state, user=user)
    assert transcript.humans == ("user", name)
    assert transcript.assumed == (name,)
    assert transcript.skipped == {}
    assert find_owners(transcript.humans, transcript.assumed, Scope.user(user)) == ("user", name)


@pytest.mark.parametrize("user", ["ben", "joe.carmen", "carmen.jr", ""])
async def test_a_part_of_a_users_name_makes_no_member_a_person(user: str) -> None:
    state = await saved_team(UserProxyAgent("carmen", input_func=lambda _: "I live in Bergen."))
    assert read_state(state, user=user).humans == ("user",)


async def test_a_member_with_a_model_is_no_person_under_the_name_of_the_user() -> None:
    carmen = AssistantAgent("carmen", ReplayChatCompletionClient(["I live in Bergen."]))
    assert read_state(await saved_team(carmen), user="carmen").humans == ("user",)
