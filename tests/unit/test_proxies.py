"""A user proxy is a person, whatever its name."""

from __future__ import annotations

from autogen_agentchat.agents import AssistantAgent, UserProxyAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.replay import ReplayChatCompletionClient

from afterword.agents.recorder import proxy_names


def test_the_proxies_of_a_team_are_people() -> None:
    assistant = AssistantAgent("helper", ReplayChatCompletionClient([]))
    inner = RoundRobinGroupChat([UserProxyAgent("anna")])
    team = RoundRobinGroupChat([assistant, UserProxyAgent("customer"), inner])
    assert list(proxy_names(team)) == ["customer", "anna"]
    assert list(proxy_names(assistant)) == []
    assert list(proxy_names(UserProxyAgent("customer"))) == ["customer"]
