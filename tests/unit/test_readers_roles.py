"""Who speaks: people, agents and tools in lists with roles and in states of agents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from afterword.extractors.readers import read_state

Said = list[tuple[str, str, str]]


def said(state: object, **options: Any) -> Said:
    return [(turn.speaker, turn.role.value, turn.text) for turn in read_state(state, **options).turns]


def line(role: str, content: Any, name: str | None = None) -> dict[str, Any]:
    return {"role": role, "content": content, **({"name": name} if name else {})}


def test_without_names_the_role_user_is_the_person() -> None:
    messages = [line("system", "Be kind."), line("user", "Hi"), line("assistant", "Hello")]
    expected = [("assistant", "system", "Be kind."), ("user", "human", "Hi"), ("assistant", "agent", "Hello")]
    for state in (messages, {"messages": messages}, {"history": messages, "type": "OpenAIAgentState"}):
        assert [item[1:] for item in said(state)] == [item[1:] for item in expected]


def test_a_name_beside_the_role_user_is_the_persons() -> None:
    assert said([line("user", "Hi", "Lena"), line("assistant", "Hello")])[0] == ("Lena", "human", "Hi")


@pytest.mark.parametrize("name", ["user", "Human", "USER_PROXY", "userproxy"])
def test_a_mirrored_list_is_told_by_name(name: str) -> None:
    history = [line("assistant", "Hi", name), line("user", "Hello", "planner")]
    assert said(history) == [(name, "human", "Hi"), ("planner", "agent", "Hello")]


@pytest.mark.parametrize(
    "history",
    [
        [line("assistant", "Hi", "Lena"), line("user", "Hello", "assistant")],
        [line("assistant", "Hi", "Lena"), line("user", "Hello", "planner")],
        [line("user", "Hi", "planner"), line("assistant", "Hello", "Lena")],
        [line("user", "Hi", "a"), line("user", "Hello", "b"), line("assistant", "Hm", "c")],
        {"chat_id": 1, "cost": {}, "chat_history": [line("assistant", "Hi"), line("user", "Hello")]},
        {"assistant": [line("assistant", "Hi"), line("user", "Hello")]},
    ],
)
def test_where_either_side_may_be_the_person_nobody_is(history: object) -> None:
    """An agent's words must never be taken for a person's; naming the person helps."""
    transcript = read_state(history)
    assert transcript.humans == ()
    assert transcript.skipped == {"no human recognised": 1}


@pytest.mark.parametrize("is_named", [True, False])
def test_in_the_lists_of_partners_only_a_known_person_is_one(is_named: bool) -> None:
    """An agent keeps a list for each partner. What one list shows of its version holds for the others."""

    def partner(name: str, text: str) -> list[dict[str, Any]]:
        names = (name, "assistant") if is_named else (None, None)
        return [line("user", text, names[0]), line("assistant", "Noted.", names[1])]

    lists = {"user_proxy": partner("user_proxy", "I live in Bergen."), "critic": partner("critic", "I live on Mars.")}
    for state in (lists, dict(reversed(lists.items()))):
        assert [text for _, role, text in said(state) if role == "human"] == ["I live in Bergen."]
    named = said({"lena": lists["user_proxy"], "critic": lists["critic"]}, humans=["lena", "user_proxy"])
    assert [text for _, role, text in named if role == "human"] == ["I live in Bergen."]


def test_a_list_under_the_name_of_its_partner_is_that_of_an_agent() -> None:
    critic = [line("user", "I live on Mars.", "critic"), line("assistant", "Noted.", "assistant")]
    assert read_state({"critic": critic}).humans == ()
    assert read_state({"critic": critic}, user="critic").humans == ("critic",)


def test_lists_without_a_sign_of_partners_are_read_by_their_roles() -> None:
    lists = {"monday": [line("user", "Hi"), line("assistant", "Hello")], "tuesday": [line("user", "Bye", "kim")]}
    speakers = [(name, role) for name, role, _ in said(lists)]
    assert speakers == [("user", "human"), ("assistant", "agent"), ("kim", "human")]


def test_naming_a_person_adds_them() -> None:
    history = [line("assistant", "Hi", "Lena"), line("user", "Hello", "planner")]
    assert said(history, humans=["lena"]) == [("Lena", "human", "Hi"), ("planner", "agent", "Hello")]


def test_tools_of_every_age_are_read() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"no": 1}'}}
    messages = [
        line("user", "Look it up."),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
        {"role": "assistant", "content": "One moment.", "function_call": {"name": "old", "arguments": {"no": 2}}},
        {"role": "function", "name": "old", "content": "older"},
        {"type": "function_call", "name": "new", "arguments": "{}", "call_id": "c2"},
        {"type": "function_call_output", "call_id": "c2", "output": "newest"},
    ]
    assert [item[1:] for item in said(messages)] == [
        ("human", "Look it up."),
        ("tool", 'call look_up({"no": 1})'),
        ("tool", "found"),
        ("agent", "One moment."),
        ("tool", 'call old({"no":2})'),
        ("tool", "older"),
        ("tool", "call new({})"),
        ("tool", "newest"),
    ]


def test_the_output_of_code_that_a_user_proxy_ran_is_no_speech() -> None:
    output = "exitcode: 0 (execution succeeded)\nCode output: I live in Rome."
    history = [line("assistant", "Run it.", "user"), line("user", "```x```", "bot"), line("assistant", output, "user")]
    assert [item[1] for item in said(history)] == ["human", "agent", "tool"]


def test_pictures_never_reach_the_text() -> None:
    data = "iVBORw0KGgo" * 40
    parts = [
        {"type": "text", "text": "See"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        {"type": "input_image", "image_url": "x"},
        {"type": "input_audio", "input_audio": {}},
        data,
    ]
    assert said([line("user", parts)]) == [("user", "human", "See\n[image]\n[image]\n[attachment]\n[image]")]
    assert said([line("user", f"![x](data:image/png;base64,{data}) there")])[0][2] == "![x]([image]) there"
    assert said([{"role": "tool", "content": data}])[0][2] == "[data]"


def test_a_lone_context_with_an_unknown_name_has_no_person() -> None:
    state = {"llm_context": {"messages": [{"type": "UserMessage", "source": "lena", "content": "Hi"}]}}
    assert read_state(state).humans == ()
    assert read_state(state, humans=["lena"]).humans == ("lena",)


def test_the_name_of_the_user_is_a_persons_unless_an_agent_has_it() -> None:
    asked = {"type": "UserMessage", "source": "lena", "content": "Hi"}
    answer = {"type": "AssistantMessage", "source": "lena", "content": "Hello"}
    transcript = read_state({"llm_context": {"messages": [asked]}}, user="lena")
    assert (transcript.humans, transcript.assumed, transcript.skipped) == (("lena",), ("lena",), {})
    assert read_state({"llm_context": {"messages": [asked]}}, user="lena.k").humans == ()
    assert read_state({"llm_context": {"messages": [asked, answer]}}, user="lena").humans == ()
    wrapped = {"first": [{"llm_context": {"messages": [asked]}}, {"llm_context": {"messages": [answer]}}]}
    assert read_state(wrapped, user="lena").humans == ()


def test_a_user_proxy_in_a_result_is_the_user_whose_name_it_has() -> None:
    messages = [
        {"type": "TextMessage", "source": "manager", "content": "Ask.", "models_usage": None},
        {"type": "UserInputRequestedEvent", "source": "lena", "request_id": "1", "content": ""},
        {"type": "TextMessage", "source": "lena", "content": "I live in Oslo.", "models_usage": None},
    ]
    assert read_state({"messages": messages, "stop_reason": None}, user="lena").humans == ("lena",)
    ran = {"type": "CodeExecutionEvent", "source": "lena", "result": {"exit_code": 0, "output": "7"}}
    assert read_state({"messages": [*messages, ran], "stop_reason": None}, user="lena").humans == ()


def test_a_speaker_whose_words_a_model_wrote_is_no_outsider() -> None:
    """A filtered agent may speak under a name that the team's states do not list."""
    wrapped = {"source": "inner", "type": "TextMessage", "content": "ok", "models_usage": {"completion_tokens": 1}}
    stop = {"source": "StopAgent", "type": "StopMessage", "content": "done"}
    asked = {"source": "lena", "type": "TextMessage", "content": "Hi", "models_usage": None}
    states = {
        "filter": {"agent_state": {"type": "BaseState"}},
        "GraphManager": {"message_thread": [asked, wrapped, stop]},
    }
    assert read_state({"agent_states": states}).humans == ("lena",)


def team_with(*speakers: str) -> Any:
    thread = [
        {"source": name, "type": "TextMessage", "content": f"{name} lives in Oslo.", "models_usage": None}
        for name in speakers
    ]
    return {
        "agent_states": {
            "planner": {"agent_state": {"type": "BaseState"}},
            "RoundRobinGroupChatManager": {"message_thread": thread},
        }
    }


def test_who_speaks_from_outside_of_a_team_is_only_assumed_to_be_a_person() -> None:
    transcript = read_state(team_with("user", "crm_export", "planner"))
    assert (transcript.humans, transcript.assumed) == (("user", "crm_export"), ("crm_export",))


@pytest.mark.parametrize("name", ["manager", "System", "scheduler"])
def test_a_programs_name_outside_of_a_team_is_no_persons(name: str) -> None:
    assert read_state(team_with("priya", name)).humans == ("priya",)
    assert read_state(team_with("priya", name), humans=[name]).humans == ("priya", name)


def test_a_person_whom_the_caller_names_is_not_only_assumed() -> None:
    transcript = read_state(team_with("Priya", "jonas"), humans=["priya"])
    assert (transcript.humans, transcript.assumed) == (("Priya", "jonas"), ("jonas",))


def test_a_name_of_a_person_is_known_in_any_spelling() -> None:
    assert read_state(team_with(" User ", "planner")).assumed == ()


def test_an_agent_called_user_is_an_agent() -> None:
    context = [{"type": "AssistantMessage", "source": "user", "content": "I simulate."}]
    thread = [{"source": "user", "type": "TextMessage", "content": "I simulate."}]
    states = {
        "user": {"agent_state": {"llm_context": {"messages": context}}},
        "GraphManager": {"message_thread": thread},
    }
    assert said({"agent_states": states}) == [("user", "agent", "I simulate.")]


def test_a_manager_alone_tells_nobody_from_outside() -> None:
    thread = [{"source": name, "type": "TextMessage", "content": "Hi"} for name in ("priya", "planner")]
    assert read_state({"message_thread": thread}).humans == ()


def test_unknown_types_and_events_are_counted() -> None:
    kinds = ["Foo", "Foo", "SelectSpeakerEvent", "UserInputRequestedEvent", 7, "a text with\nlines"]
    messages: list[object] = [{"source": "x", "content": "", "type": kind} for kind in kinds]
    assert read_state([*messages, 5]).skipped == {
        "unknown type Foo": 2,
        "event SelectSpeakerEvent": 1,
        "event UserInputRequestedEvent": 1,
        "unknown type (unnamed)": 2,
        "not a message": 1,
    }


def test_times_keep_the_offset_that_was_written() -> None:
    times = ["2025-06-01 12:00:00+00:00", "2025-06-01T14:00:00+02:00", "2025-06-01T12:00:00Z", "2025-06-01T12:00:00"]
    messages = [{"source": "user", "type": "TextMessage", "content": "Hi", "created_at": at} for at in times]
    read = [turn.said_at.isoformat() for turn in read_state(messages).turns if turn.said_at]
    in_utc = "2025-06-01T12:00:00+00:00"
    assert read == [in_utc, "2025-06-01T14:00:00+02:00", in_utc, in_utc]


def test_a_state_saved_as_one_more_string_is_read() -> None:
    state: object = {"llm_context": {"messages": [{"type": "UserMessage", "source": "user", "content": "Hi"}]}}
    for _ in range(3):
        assert said(state) == [("user", "human", "Hi")]
        state = json.dumps(state)
    assert said({"last_active": "today", "user": "lena", "saved": state}) == [("user", "human", "Hi")]


def test_results_of_tools_are_no_words_of_a_person_where_they_are_parts_of_their_message() -> None:
    """Anthropic's API lists them under the role `user`. A web page could write into a memory through them."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.txt"}}
    page = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "I live in Oslo."}
    parts = [{"type": "text", "text": "I am allergic to nuts."}, {"type": "text", "text": "I work at Hydro."}]
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": parts}
    assert said(
        [
            line("user", [{"type": "text", "text": "What does it say?"}]),
            line("assistant", [{"type": "text", "text": "I look."}, call]),
            line("user", [page, {"type": "text", "text": "Thanks."}]),
            line("assistant", [found]),
        ]
    ) == [
        ("user", "human", "What does it say?"),
        ("assistant", "agent", "I look."),
        ("assistant", "tool", 'call read({"path":"a.txt"})'),
        ("tool", "tool", "I live in Oslo."),
        ("user", "human", "Thanks."),
        ("tool", "tool", "I am allergic to nuts.\nI work at Hydro."),
    ]
