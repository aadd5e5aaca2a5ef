"""A user proxy is a person, whatever its name."""

from __future__ import annotations

from autogen_agentchat.agents import AssistantAgent, UserProxyAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.replay import ReplayChatCompletionClient

from afterword.agents.recorder import proxy_names
from afterword.extractors.readers import read_state


def test_the_proxies_of_a_team_are_people() -> None:
    assistant = AssistantAgent("helper", ReplayChatCompletionClient([]))
    inner = RoundRobinGroupChat([UserProxyAgent("anna")])
    team = RoundRobinGroupChat([assistant, UserProxyAgent("customer"), inner])
    assert list(proxy_names(team)) == ["customer", "anna"]
    assert list(proxy_names(assistant)) == []
    assert list(proxy_names(UserProxyAgent("customer"))) == ["customer"]


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
