"""A saved state without its secrets is still a state that AutoGen loads."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.replay import ReplayChatCompletionClient

from afterword.extractors.readers import read_state
from afterword.privacy.policy import Privacy
from afterword.privacy.record_requests import HIDDEN
from afterword.privacy.redaction import Masking

PHOTO = base64.b64encode(bytes(range(256)) * 3).decode()
PRIVACY = Privacy()


def agent_state(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"type": "AssistantAgentState", "version": "1.0.0", "llm_context": {"messages": list(messages)}}


def said(content: Any) -> dict[str, Any]:
    return {"content": content, "source": "user", "type": "UserMessage"}


def called(arguments: str) -> dict[str, Any]:
    call = {"id": "call_4111111111111111", "arguments": arguments, "name": "login"}
    return {"content": [call], "thought": "the password is hunter2", "source": "helper", "type": "AssistantMessage"}


def test_messages_arguments_thoughts_and_results_are_masked() -> None:
    result = {"content": "ok, hunter2 fits", "name": "login", "call_id": "call_4111111111111111", "is_error": False}
    state = agent_state(
        said("log me in, my password is hunter2"),
        called('{"password": "hunter2", "pin": 4711, "attempts": 3}'),
        {"content": [result], "type": "FunctionExecutionResultMessage"},
    )
    masking = Masking()
    found = masking.mask_state(state)
    assert "hunter2" not in json.dumps(found)
    (call,) = found["llm_context"]["messages"][1]["content"]
    assert json.loads(call["arguments"]) == {"password": "[redacted: password]", "pin": 0, "attempts": 3}
    assert call["id"] == "call_4111111111111111"
    assert masking.counts == {"password": 4, "code": 1}


def test_json_inside_of_json_stays_json() -> None:
    inner = json.dumps({"body": json.dumps({"api_key": "abc123def456ghi", "q": 'say "hi"'})})
    found = Masking().mask_state(agent_state(called(inner)))
    (call,) = found["llm_context"]["messages"][0]["content"]
    assert json.loads(json.loads(call["arguments"])["body"]) == {"api_key": "[redacted: token]", "q": 'say "hi"'}


def test_image_data_is_never_touched() -> None:
    state = agent_state(said(["my password is hunter2", {"data": PHOTO}, f"data:image/png;base64,{PHOTO}"]))
    found = Masking().mask_state(state)
    words, photo, url = found["llm_context"]["messages"][0]["content"]
    assert (words, photo["data"]) == ("my password is [redacted: password]", PHOTO)
    assert url.endswith(PHOTO)
    masking = Masking()
    masking.mask_state(agent_state(said([{"data": "my password is hunter2"}])))
    assert masking.counts == {"password": 1}


def test_a_secret_is_masked_where_it_was_said_before_its_word() -> None:
    found = Masking().mask_state(agent_state(said("hunter2?"), said("yes, my password is hunter2")))
    assert "hunter2" not in json.dumps(found)


def test_every_sample_reads_alike_before_and_after(shared: Path) -> None:
    """The recorder reads what it keeps, a batch the file as it was: both must find the same turns."""
    for path in sorted((shared / "data" / "states").glob("*.json")):
        state = json.loads(path.read_text(encoding="utf-8"))
        if path.stem == "gold" or not isinstance(state, dict):
            continue
        masked = PRIVACY.mask_state(state, ["user"])
        if path.stem != "adversarial":
            assert masked == state, path.stem
        assert read_state(masked).turns == read_state(state).turns, path.stem


def test_what_is_off_the_record_is_gone_from_lists_and_copies() -> None:
    aside = {"content": "off the record: I am Batman, really", "source": "user", "type": "TextMessage", "id": "m1"}
    answer = {"content": "I never knew that you are Batman", "source": "helper", "type": "TextMessage", "id": "m2"}
    public = {"content": "I live in Graz.", "source": "user", "type": "TextMessage", "id": "m3"}
    state = {
        "type": "TeamState",
        "agent_states": {
            "RoundRobinGroupChatManager": {"message_thread": [aside, answer, public], "task": aside["content"]},
            "helper": {"agent_state": {}, "message_buffer": [answer]},
        },
    }
    found = PRIVACY.mask_state(state, ["user"])
    thread = found["agent_states"]["RoundRobinGroupChatManager"]["message_thread"]
    assert [message["content"] for message in thread] == [HIDDEN, HIDDEN, "I live in Graz."]
    assert found["agent_states"]["helper"]["message_buffer"][0]["content"] == HIDDEN
    assert "Batman" not in json.dumps(found)


@pytest.mark.parametrize("words", ["/off-record", "Off the record from now on.", "let's go off the record"])
async def test_an_agent_loads_what_is_left_of_it(words: str) -> None:
    state = agent_state(
        said(words),
        called('{"password": "hunter2"}'),
        {
            "content": [{"content": "x", "name": "login", "call_id": "call_4111111111111111", "is_error": False}],
            "type": "FunctionExecutionResultMessage",
        },
        said(["a photo of me", {"data": PHOTO}]),
        said("/on-record I live in Graz."),
    )
    found = PRIVACY.mask_state(state, ["user"])
    agent = AssistantAgent("helper", ReplayChatCompletionClient(["fine"]))
    await agent.load_state(found)
    kept = json.dumps(await agent.save_state())
    assert not any(word in kept for word in ("hunter2", "photo", PHOTO))
    assert "I live in Graz." in kept
    assert PRIVACY.mask_state(found, ["user"]) == found
    assert read_state(found).turns == read_state(state).turns
