"""Sessions of the OpenAI Agents SDK, made by real agents without a model: what is read, and who is a person."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from afterword.extractors.errors import LayoutUnknown
from afterword.extractors.readers import read_file, read_state
from afterword.extractors.rules import RulesExtractor
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import TimeBasis
from afterword.pipeline.batch import run_batch
from afterword.pipeline.errors import SourceInvalid
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.pipeline.sources.folders import find_sessions
from afterword.store.database.engine import Store

ASKED = [
    ("user", "human", "I live in Bergen."),
    ("assistant", "tool", 'call look_up({"page": "home"})'),
    ("tool", "tool", "I live in Rome."),
]
SAID = [
    *ASKED,
    ("assistant", "agent", "Noted. I like wine."),
    ("user", "human", "I like tea.\n[image]"),
    ("assistant", "tool", "call transfer_to_writer({})"),
    ("tool", "tool", '{"assistant": "writer"}'),
    ("assistant", "agent", "A cat."),
]


@pytest.fixture(scope="module")
def saved(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what agents of the SDK saved."""
    folder = tmp_path_factory.mktemp("agents-sdk")
    program = repository / "tests" / "support" / "sdk_agents.py"
    subprocess.run([sys.executable, "-P", str(program), str(folder)], check=True, cwd=folder)
    return folder


def turns(path: Path) -> list[tuple[str, str, str]]:
    return [(turn.speaker, turn.role.value, turn.text) for turn in read_file(path).turns]


def test_the_items_of_a_session_are_read(saved: Path) -> None:
    transcript = read_file(saved / "monday.json")
    assert turns(saved / "monday.json") == SAID
    assert transcript.humans == ("user",)
    assert not transcript.skipped


def test_what_is_said_before_a_model_fails_is_read(saved: Path) -> None:
    assert turns(saved / "failed.json") == SAID[:1]


def test_equal_turns_are_all_read(saved: Path) -> None:
    assert turns(saved / "equal.json") == [("user", "human", "yes"), ("assistant", "agent", "ok")] * 3


def test_the_state_of_a_run_holds_what_the_person_asked(saved: Path) -> None:
    """Without a layout of its own only the agent's words would be found in it."""
    assert turns(saved / "run_state.json") == [*ASKED, ("assistant", "agent", "Noted.")]
    assert read_file(saved / "run_state.json").layout == "Agents SDK run state"


@pytest.mark.parametrize("kind", ["plain", "advanced"])
async def test_a_database_of_sessions_is_processed(kind: str, saved: Path, store: Store) -> None:
    path = saved / f"{kind}.db"
    with pytest.raises(SourceInvalid, match="say whose"):
        find_sessions([path])
    mira = Scope.user("mira")
    ended = await run_batch(store, find_sessions([path], scope=mira), extractor=RulesExtractor())
    outcomes = [outcome for outcome in ended if isinstance(outcome, SessionOutcome)]
    assert [outcome.session_id for outcome in outcomes] == ["monday", "tuesday"]
    assert {outcome.transcript.time_basis for outcome in outcomes} == {TimeBasis.TURNS}
    learned = [[fact.value for fact in outcome.changes.learned] for outcome in outcomes]
    assert learned == [["Bergen", "tea"], ["Voestalpine"]]
    again = await run_batch(store, find_sessions([path], scope=mira), extractor=RulesExtractor())
    assert [outcome.run_id for outcome in again if isinstance(outcome, SessionOutcome)] == [None, None]


def test_an_encrypted_session_is_a_clear_refusal() -> None:
    with pytest.raises(LayoutUnknown):
        read_state(json.loads('[{"__enc__": 1, "v": 1, "kid": "hkdf-v1", "payload": "Z0FBQUFB"}]'))
