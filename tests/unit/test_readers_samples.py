"""The readers over real saved states: what people said is in human turns, and nothing else is."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from afterword.extractors.readers import read_file, read_state
from afterword.facts.transcripts import Role, TimeBasis, Transcript, Turn
from afterword.privacy.policy import Privacy
from afterword.privacy.record_requests import Markers

SAID = {
    "adversarial": ["{{ config }} {% raw %} I'm Ana, I pay invoices on the last working day of the month."],
    "assistant_agent": ["Tomás Figueira", "vegetarian", "Clara until 9:30", "knee surgery in January", "window seats"],
    "assistant_agent_buffered_context": ["Helix", "I use zsh.", "My shell is fish now"],
    "assistant_agent_listmemory": ["I moved to Leipzig last week"],
    "assistant_agent_multimodal": ["Mabel Okafor here", "[image]", "Saturday the 7th", "m.okafor@example.org"],
    "code_executor_in_team": ["numbers without thousands separators"],
    "graphflow": ["Open Sans, no emoji, 300 words", "Frau Lindqvist signs off"],
    "legacy_ag2_0.14.0_assistant_chat_messages": ["I prefer paper", "write to me at home"],
    "legacy_ag2_0.14.0_chat_history": ["I prefer paper", "write to me at home"],
    "legacy_ag2_0.14.0_chat_result": ["I prefer paper", "write to me at home"],
    "legacy_ag2_0.14.0_user_chat_messages": ["I prefer paper", "write to me at home"],
    "legacy_v0.2.40_assistant_chat_messages": ["I prefer paper", "write to me at home"],
    "legacy_v0.2.40_chat_history": ["I prefer paper", "write to me at home"],
    "legacy_v0.2.40_chat_result": ["I prefer paper", "write to me at home"],
    "legacy_v0.2.40_user_chat_messages": ["I prefer paper", "write to me at home"],
    "legacy_v0.4.5_roundrobin": ["Always quote prices in euros. We ship to Graz."],
    "magentic_one": ["Brandt Logistik, 40 sales people", "stay in the EU", "I dislike long reports"],
    "memory_as_user_message_teachability": ["I'm Kofi.", "on day shifts since Monday"],
    "memory_in_prompt_tutorial_pattern": ["Hartmann AG", "For Hartmann I want full sentences"],
    "message_list_history": ["British spelling"],
    "nested_team": ["pottery studio in Gmunden", "back entrance"],
    "openai_agent": ["Use Celsius please, always."],
    "roundrobin_groupchat": ["Use PostgreSQL", "deploys only on Tuesdays", "SQLite for the pilot", "19 June"],
    "roundrobin_stopped_early": ["Fritzbox 7590", "never send SMS"],
    "roundrobin_with_memory": ["Ravi can eat peanuts again", "no coriander"],
    "selector_groupchat": ["Dieter Vogt", "washing machine hose", "my brother-in-law is a plumber"],
    "society_of_mind_in_team": ["I like short lines", "mother Solveig's 70th"],
    "swarm": ["I take 43 in your brand", "make it store credit"],
    "task_result": ["British spelling"],
    "team_structured_message": ["claim C-7788: scraped while parked on 7 March"],
}
NEVER_SAID = {
    "adversarial": ["IBAN", "user is admin"],
    "assistant_agent": ["I prefer to book directly", "I hate stairs", "They land in Lisbon anyway"],
    "assistant_agent_buffered_context": ["Berlin", "metric"],
    "assistant_agent_listmemory": ["Berlin", "metric"],
    "assistant_agent_multimodal": ["iVBOR"],
    "code_executor_in_team": ["215"],
    "graphflow": ["I would prefer more emoji"],
    "legacy_ag2_0.14.0_groupchat_messages": ["Postgres"],
    "legacy_v0.2.40_chat_history": ["A. Reyes", "Letters go to your office"],
    "magentic_one": ["HubSpot.", "probably prefers", "I recommend Odoo"],
    "memory_as_user_message_teachability": ["night shifts"],
    "memory_in_prompt_tutorial_pattern": ["concise", "Relevant memory"],
    "roundrobin_groupchat": ["Rust", "database is locked"],
    "roundrobin_with_memory": ["allergic"],
    "selector_groupchat": ["17:00"],
    "swarm": ["Transferred to", "Do you want the money back"],
    "team_structured_message": ["estimated_damage_eur"],
}
WORDLESS = ["code_executor_agent_alone", "society_of_mind_agent_alone"]


def sample(shared: Path, name: str) -> Transcript:
    return read_file(shared / "data" / "states" / f"{name}.json")


def human_words(transcript: Transcript) -> str:
    return "\n".join(turn.text for turn in transcript.turns if turn.role is Role.HUMAN)


def short(turn: Turn) -> tuple[str, str, str]:
    return turn.speaker, turn.role.value, turn.text[:24]


@pytest.mark.parametrize("name", SAID)
def test_what_people_said_is_in_human_turns(shared: Path, name: str) -> None:
    words = human_words(sample(shared, name))
    assert [phrase for phrase in SAID[name] if phrase not in words] == []


@pytest.mark.parametrize("name", NEVER_SAID)
def test_what_nobody_said_is_in_no_human_turn(shared: Path, name: str) -> None:
    words = human_words(sample(shared, name))
    assert [phrase for phrase in NEVER_SAID[name] if phrase in words] == []


@pytest.mark.parametrize("name", SAID)
def test_every_utterance_of_a_person_is_one_turn(shared: Path, name: str) -> None:
    """The samples repeat nothing on purpose: a text found twice would be a copy taken for a second utterance."""
    said = [turn.text for turn in sample(shared, name).turns if turn.role in (Role.HUMAN, Role.AGENT)]
    assert len(said) == len(set(said))


def test_every_sample_is_covered(shared: Path) -> None:
    names = {path.stem for path in (shared / "data" / "states").glob("*.json")} - {"gold"}
    assert names <= {*SAID, *NEVER_SAID, *WORDLESS, "legacy_v0.2.40_groupchat_messages"}


@pytest.mark.parametrize("name", WORDLESS)
def test_a_state_that_keeps_no_words_is_read_as_none(shared: Path, name: str) -> None:
    transcript = sample(shared, name)
    assert transcript.turns == ()
    assert transcript.skipped == {}


def test_a_swarm_reads_turn_by_turn(shared: Path) -> None:
    transcript = sample(shared, "swarm")
    assert [short(turn) for turn in transcript.turns] == [
        ("user", "human", "Order A-5521, the trail "),
        ("triage", "thought", "This is a refund, hand o"),
        ("triage", "tool", "call transfer_to_refunds"),
        ("triage", "tool", "Transferred to refunds, "),
        ("triage", "agent", "Transferred to refunds, "),
        ("refunds", "tool", "call transfer_to_user({}"),
        ("refunds", "tool", "Do you want the money ba"),
        ("refunds", "agent", "Do you want the money ba"),
        ("user", "human", "Hmm, make it store credi"),
        ("refunds", "tool", 'call refund({"order_id":'),
        ("refunds", "tool", "refund for A-5521: 79.90"),
        ("refunds", "agent", "Refunded 79.90 EUR as st"),
    ]
    assert transcript.time_basis is TimeBasis.TURNS
    first = transcript.turns[0]
    assert first.message_id == "9052e615-2a46-47e6-9641-32b1b6d675e6"
    assert first.said_at is not None
    assert first.said_at.isoformat() == "2026-11-20T12:32:16.306400+00:00"


def test_people_outside_a_team_are_its_humans(shared: Path) -> None:
    assert sample(shared, "roundrobin_groupchat").humans == ("priya", "jonas")
    assert sample(shared, "roundrobin_groupchat").assumed == ("priya", "jonas")
    assert sample(shared, "selector_groupchat").assumed == ()
    assert sample(shared, "selector_groupchat").humans == ("user", "user_proxy")


def test_a_group_chat_without_a_known_person_has_none_and_says_so(shared: Path) -> None:
    path = shared / "data" / "states" / "legacy_v0.2.40_groupchat_messages.json"
    unknown = read_file(path)
    assert (unknown.humans, unknown.skipped) == ((), {"no human recognised": 1})
    known = read_file(path, humans=["customer"])
    assert (known.humans, known.skipped) == (("customer",), {})
    assert human_words(known).startswith("We run everything on MySQL 8")


@pytest.fixture(scope="module")
def scenario_states(shared: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("scenario_states", shared / "tools" / "scenario_states.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look their module up by name.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "scenario_states", module)
        spec.loader.exec_module(module)
    return module


def expected(session: dict[str, Any], arguments_text: Any) -> list[tuple[str, str]]:
    """What a saved state of this container keeps of the session, memory aside."""
    untyped = session["container"] in ("v02", "openai")
    lost = {"memory", *(["thought"] if untyped else []), *(["system"] if session["container"] != "openai" else [])}
    names = {"user": "human", "assistant": "agent", "tool_call": "tool", "tool_result": "tool"}
    found = []
    for message in session["messages"]:
        role = message["role"]
        if role not in lost:
            is_call = role == "tool_call"
            text = f"call {message['name']}({arguments_text(message)})" if is_call else message["content"]
            found.append((names.get(role, role), text))
    return found


def test_every_scenario_session_reads_into_its_messages(shared: Path, scenario_states: ModuleType) -> None:
    for path in sorted((shared / "data" / "scenarios").glob("*.json")):
        scenario = json.loads(path.read_text(encoding="utf-8"))
        for session in scenario["sessions"]:
            state = json.loads(json.dumps(scenario_states.saved_state(session, scenario["id"])))
            people = {message["source"] for message in session["messages"] if message["role"] == "user"}
            transcript = read_state(state, humans=people, privacy=Privacy(frozenset(), Markers((), ())))
            read = [
                (turn.role.value, turn.text)
                for turn in transcript.turns
                if turn.role is not Role.MEMORY and not turn.text.startswith("Transferred to ")
            ]
            said = expected(session, scenario_states.arguments_text)
            assert read == [item for item in said if not item[1].startswith("Transferred to ")], session["session_id"]
            assert set(transcript.humans) == people
