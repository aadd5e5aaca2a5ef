"""What an agent sees already is not told again, and what was said several times is told once."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import MultiModalMessage
from autogen_core import Image
from autogen_core.models import ModelInfo
from autogen_ext.models.replay import ReplayChatCompletionClient
from PIL.Image import new

from afterword import Afterword
from afterword import open as open_afterword
from afterword.store.database.engine import Store
from injected import CUSTOM, blocks, last_request

PICTURE = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABAQMAAAAl21bKAAAAA1BMVEU="


@pytest.fixture
async def app(store: Store) -> AsyncIterator[Afterword]:
    async with open_afterword(store=store) as opened:
        yield opened


def seeing() -> ReplayChatCompletionClient:
    return ReplayChatCompletionClient(["fine", "fine", "fine"], model_info=ModelInfo(**{**CUSTOM, "vision": True}))


@pytest.mark.parametrize(
    "words",
    [
        ["Please compare the red bicycle", Image(new("RGB", (4, 4))), "with the blue bicycle."],
        [Image(new("RGB", (4, 4))), "Please compare the red bicycle with the blue bicycle."],
        "Please compare\tthe red bicycle\u200b with the blue bicycle.",
        "Please compare the red bicycle\x00 with the blue bicycle.",
        f"Please compare the red bicycle {PICTURE} with the blue bicycle.",
        "Please compare the red bicycle in the cafe\u0301 with the blue bicycle.",
        "Please compare the red bicycle. My password is hunter2secret9! And the blue bicycle.",
        "Please compare the red bicycle with this:\n> Otto: I like the green one more.\nWhat about the blue bicycle?",
    ],
    ids=["picture", "picture first", "zero width", "nul", "data url", "decomposed", "secret", "pasted"],
)
async def test_what_the_agent_sees_is_not_told_again(app: Afterword, words: str | list[str | Image]) -> None:
    lena, client = app.user("lena"), seeing()
    agent = AssistantAgent("helper", client, memory=[lena.memory()])
    async with lena.record(agent, session_id="s1"):
        await agent.run(task=words if isinstance(words, str) else MultiModalMessage(source="user", content=words))
    await agent.run(task="What about the red bicycle?")
    assert blocks(last_request(client)) == []
    await AssistantAgent("helper", client, memory=[lena.memory()]).run(task="What about the red bicycle?")
    assert "red bicycle" in str(blocks(last_request(client)))


async def test_what_the_agent_sees_takes_no_room_from_other_turns(app: Afterword) -> None:
    lena, client = app.user("lena"), seeing()
    before = AssistantAgent("helper", client)
    async with lena.record(before, session_id="s0"):
        await before.run(task="My red bicycle came with a broken bell, from the shop in Skien.")
    client = ReplayChatCompletionClient(["fine"] * 20, model_info=CUSTOM)
    agent = AssistantAgent("helper", client, memory=[lena.memory()])
    async with lena.record(agent, session_id="s1"):
        for number in range(15):
            await agent.run(task=f"The red bicycle {number}?")
    await agent.run(task="The red bicycle?")
    assert "Skien" in str(blocks(last_request(client)))


async def test_what_was_said_in_several_sessions_is_told_once(app: Afterword) -> None:
    lena = app.user("lena")
    for number, words in enumerate(("My order of chairs came with a broken armrest.", *["What about my order?"] * 15)):
        agent = AssistantAgent("helper", seeing())
        async with lena.record(agent, session_id=f"s{number}"):
            await agent.run(task=words)
    client = seeing()
    await AssistantAgent("helper", client, memory=[lena.memory()]).run(task="Is there news about the order?")
    [block] = blocks(last_request(client))
    assert "armrest" in str(block.content)
    assert str(block.content).count("What about my order?") == 1
    found = [str(each.content) for each in (await lena.memory().query("order")).results]
    assert sorted(found) == ["My order of chairs came with a broken armrest.", "What about my order?"]
    hits = await lena.search("order")
    assert len(hits.hits) == 2
