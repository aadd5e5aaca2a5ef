"""Who counts as a person in conversations of real agents: named tasks, the user's own name, and examples."""

from __future__ import annotations

import json
from collections.abc import Sequence

import PIL.Image
import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import FunctionCall, Image
from autogen_core.model_context import (
    BufferedChatCompletionContext,
    ChatCompletionContext,
    HeadAndTailChatCompletionContext,
    TokenLimitedChatCompletionContext,
    UnboundedChatCompletionContext,
)
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    UserMessage,
)
from autogen_ext.models.replay import ReplayChatCompletionClient

import afterword
from afterword import FactMemory, SessionOutcome, process_session, record_session, resume
from afterword.agents.live_agents import with_marked_examples
from afterword.extractors.readers import read_state
from afterword.extractors.rules import RulesExtractor
from afterword.facts.scopes import Scope
from afterword.pipeline.intake import Saved
from afterword.privacy.policy import Privacy
from afterword.privacy.state_keys import EXAMPLE_MARK
from afterword.store import sessions
from afterword.store.database.engine import Store
from conversing import facts

LENA, APOLLO = Scope.user("lena"), Scope.parse("default/project/apollo")
EXAMPLES: list[LLMMessage] = [
    UserMessage(content="I live in Paris. I am allergic to nuts. My password is hunter2hunter2.", source="user"),
    AssistantMessage(content="Booked.", source="helper"),
]


def helper(name: str = "helper", context: ChatCompletionContext | None = None) -> AssistantAgent:
    return AssistantAgent(name, ReplayChatCompletionClient(["fine"] * 9), model_context=context)


async def learned(store: Store, scope: Scope = LENA, session_id: str = "s1") -> list[str]:
    await process_session(store, Saved(scope, session_id), extractor=RulesExtractor())
    return [fact.statement for fact in await facts(store, scope)]


@pytest.mark.parametrize("scope", [LENA, APOLLO], ids=str)
@pytest.mark.parametrize("is_team", [False, True])
@pytest.mark.parametrize("name", ["manager", "Scheduler", "system"])
async def test_a_task_under_a_programs_name_makes_no_facts(
    store: Store, scope: Scope, is_team: bool, name: str
) -> None:
    agent = RoundRobinGroupChat([helper()], max_turns=1) if is_team else helper()
    async with record_session(agent, scope=scope, session_id="s1", store=store):
        await agent.run(task=TextMessage(source=name, content="I prefer short issues. I work at Acme."))
    assert await learned(store, scope) == []


async def test_a_person_with_a_programs_name_counts_if_named(store: Store) -> None:
    team = RoundRobinGroupChat([helper()], max_turns=1)
    async with record_session(team, user="lena", session_id="s1", store=store, humans=["manager"]):
        await team.run(task=TextMessage(source="manager", content="I prefer tea."))
    assert await learned(store) == ["The user prefers tea."]


@pytest.mark.parametrize("is_team", [False, True])
async def test_a_speaker_with_the_name_of_the_user_is_the_user(store: Store, is_team: bool) -> None:
    agent = RoundRobinGroupChat([helper()], max_turns=1) if is_team else helper()
    async with record_session(agent, user="lena", session_id="s1", store=store):
        await agent.run(task=TextMessage(source="Lena", content="I prefer tea."))
    assert await learned(store) == ["The user prefers tea."]


async def test_another_name_is_an_agents_for_a_single_agent_and_the_reading_says_so(store: Store) -> None:
    agent = helper()
    async with record_session(agent, user="lena", session_id="s1", store=store):
        await agent.run(task=TextMessage(source="kim", content="I prefer tea."))
    assert await learned(store) == []
    with store.reading() as db:
        session = sessions.find_session(db, LENA, "s1")
    assert session is not None
    assert session.skipped == {"no human recognised": 1, "may be a person's": 1}


async def test_a_speaker_who_may_be_a_person_is_logged_once(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    async with afterword.open(store=store) as app:
        lena, agent = app.user("lena"), helper()
        for words in ("I prefer tea.", "I live in Rome."):
            async with lena.record(agent, session_id="s1"):
                await agent.run(task=TextMessage(source="Kim", content=words))
            (session,) = (await app.run_pending()).sessions
            assert isinstance(session.result, SessionOutcome)
            advice = session.result.advice or ""
            assert "name the people with `humans`" in advice
        (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert "session s1 of" in warning
        assert advice in warning
        assert "lena" not in warning
        async with lena.record(agent, session_id="s1", humans=["Kim"]):
            await agent.run(task=TextMessage(source="Kim", content="I own a bike."))
        (session,) = (await app.run_pending()).sessions
        assert isinstance(session.result, SessionOutcome)
        assert session.result.advice is None


async def test_an_agent_with_the_name_of_the_user_is_no_person(store: Store) -> None:
    agent = helper("lena")
    async with record_session(agent, user="lena", session_id="s1", store=store):
        await agent.run(task=TextMessage(source="lena", content="I prefer tea."))
    assert await learned(store) == []


def contexts(examples: Sequence[LLMMessage] = EXAMPLES) -> list[ChatCompletionContext]:
    return [
        UnboundedChatCompletionContext(list(examples)),
        BufferedChatCompletionContext(3, list(examples)),
        HeadAndTailChatCompletionContext(2, 2, list(examples)),
        TokenLimitedChatCompletionContext(ReplayChatCompletionClient([]), initial_messages=list(examples)),
    ]


@pytest.mark.parametrize("context", contexts(), ids=lambda each: type(each).__name__)
async def test_examples_in_the_context_are_no_words_of_the_user(store: Store, context: ChatCompletionContext) -> None:
    agent = helper(context=context)
    async with record_session(agent, user="lena", session_id="s1", store=store):
        await agent.run(task="My sister is Ida.")
    assert await learned(store) == ["Ida is the user's sister."]


async def test_what_the_user_repeats_of_an_example_counts(store: Store) -> None:
    agent = helper(context=UnboundedChatCompletionContext([UserMessage(content="I live in Paris.", source="user")]))
    async with record_session(agent, user="lena", session_id="s1", store=store):
        await agent.run(task="I live in Paris.")
    assert await learned(store) == ["The user lives in Paris."]


async def test_a_cleared_context_has_no_examples(store: Store) -> None:
    agent = helper(context=UnboundedChatCompletionContext(EXAMPLES))
    await agent.model_context.clear()
    async with record_session(agent, user="lena", session_id="s1", store=store):
        await agent.run(task="I live in Bergen.")
    assert await learned(store) == ["The user lives in Bergen."]


@pytest.mark.parametrize("is_team", [False, True])
async def test_examples_stay_examples_when_the_session_goes_on(store: Store, is_team: bool) -> None:
    def built() -> AssistantAgent | RoundRobinGroupChat:
        agent = AssistantAgent(
            "helper",
            ReplayChatCompletionClient(["fine"] * 9),
            model_context=UnboundedChatCompletionContext(EXAMPLES),
            memory=[FactMemory(user="lena", store=store)],
        )
        return RoundRobinGroupChat([agent], max_turns=1) if is_team else agent

    said = ["My sister is Ida.", "I live in Bergen."]
    turns: list[list[str]] = []
    for task in said:
        agent = built()
        await resume(agent, user="lena", session_id="s1", store=store, missing_ok=True)
        async with record_session(agent, user="lena", session_id="s1", store=store):
            await agent.run(task=task)
        await learned(store)
        with store.reading() as db:
            kept = sessions.read_turns(db, LENA, "s1")
            state = json.dumps(sessions.load_state(db, LENA, "s1"))
        turns.append([turn.text for turn in kept if turn.role == "human"])
        assert "I live in Paris" in state, "the resumed agent still has its examples"
    assert turns == [said[:1], said]
    assert await learned(store) == ["Ida is the user's sister.", "The user lives in Bergen."]


async def test_initial_messages_of_an_unknown_type_do_not_prevent_the_save(store: Store) -> None:
    class Noting(UnboundedChatCompletionContext):
        component_provider_override = "tests.Noting"

        def __init__(self) -> None:
            super().__init__()
            self._initial_messages = ["a note"]  # type: ignore[list-item]

    agent = helper(context=Noting())
    async with record_session(agent, user="lena", session_id="s1", store=store):
        await agent.run(task="I live in Bergen.")
    assert await learned(store) == ["The user lives in Bergen."]


async def test_examples_of_every_kind_in_an_inner_team_are_marked_again_after_a_save() -> None:
    examples: list[LLMMessage] = [
        UserMessage(content=["What is this?", Image(PIL.Image.new("RGB", (2, 2)))], source="user"),
        AssistantMessage(content=[FunctionCall(id="1", name="look", arguments="{}")], source="helper"),
        FunctionExecutionResultMessage(
            content=[FunctionExecutionResult(content="red", name="look", call_id="1", is_error=False)]
        ),
        AssistantMessage(content="A red square.", thought="I see red.", source="helper"),
    ]
    inner = RoundRobinGroupChat([helper(context=UnboundedChatCompletionContext(examples))], max_turns=1, name="inner")
    team = RoundRobinGroupChat([inner, helper("writer")], max_turns=1)
    await team.run(task="Begin.")
    for _ in range(2):
        state = json.loads(json.dumps(with_marked_examples(await team.save_state(), team, Privacy())))
        assert json.dumps(state).count(EXAMPLE_MARK) == len(examples)
        assert [turn.text for turn in read_state(state).turns if turn.role in ("human", "agent")] == ["Begin.", "fine"]
        await team.load_state(state)
