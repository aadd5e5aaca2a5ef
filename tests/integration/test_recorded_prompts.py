"""The prompts that the recorded scenarios never needed, answered by a model as well: mending what was refused, telling
facts in one language, and keeping everything that is told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from afterword.extractors.agent_findings import ground_findings
from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.extractor import Rejection, Window
from afterword.extractors.grounding import Grounding, ground
from afterword.extractors.model.client import ModelClient, ModelSettings
from afterword.extractors.model.extractor import EXTRACT_EVERYTHING_PROMPT, ModelExtractor
from afterword.extractors.readers import read_file
from afterword.extractors.testing import ScriptedEndpoint, replayed
from afterword.extractors.transcript_assembly import date_turns
from afterword.extractors.windows import cut_windows
from afterword.facts.findings import AgentFinding, FindingPolicy, ToolFindingPolicy
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Transcript, find_owners
from afterword.pipeline.sources.folders import find_sessions
from afterword.privacy.policy import Privacy
from finding_sessions import AGENTS, SESSIONS, FindingSession

RECORDED = Path(__file__).parent.parent / "recorded"
CASSETTES = RECORDED / "scenarios.jsonl", RECORDED / "prompts.jsonl"
MENDED = ("lena-2025-09-08", "tollbooth-2025-09-30", "espiga-2025-11-06", "akuffo-2025-11-14", "elmgrove-2025-11-05")
IN_GERMAN = ("wiebke-2025-11-24", "wiebke-2026-01-19", "wiebke-2026-03-09")
TOLD_WHOLE = ("lena-2025-09-08", "espiga-2025-11-06", "akuffo-2025-11-14", "elmgrove-2025-11-05")


@dataclass(frozen=True)
class Session:
    """A session as it is extracted, in one window."""

    id: str
    scope: Scope
    transcript: Transcript
    owners: tuple[str, ...]
    window: Window

    def ground(self, candidates: list[Candidate]) -> Grounding:
        scope, session_id = self.scope, self.id
        return ground(candidates, self.transcript, scope=scope, session_id=session_id, owners=self.owners)


@pytest.fixture(scope="module")
def states(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("states")
    tool = [sys.executable, str(shared / "tools" / "scenario_states.py"), str(shared / "data" / "scenarios")]
    subprocess.run([*tool, "--out", str(folder)], check=True, capture_output=True, timeout=120)
    return folder


def sessions(states: Path, ids: tuple[str, ...]) -> Iterator[Session]:
    for saved in find_sessions([states]):
        if saved.session_id in ids and saved.path is not None:
            read = read_file(saved.path, humans=saved.humans)
            transcript = date_turns(
                read, started_at=saved.started_at, ended_at=saved.ended_at, file_time=saved.file_time
            )
            owning = find_owners(transcript.humans, transcript.assumed, saved.scope)
            (window,) = cut_windows(transcript, owning)
            yield Session(saved.session_id, saved.scope, transcript, owning, window)


@asynccontextmanager
async def model() -> AsyncIterator[ModelClient]:
    async with ScriptedEndpoint(replayed(*CASSETTES)) as endpoint:
        settings = ModelSettings("relay", base_url=endpoint.base_url, api_key="local", max_retries=0)
        async with ModelClient(settings) as client:
            yield client


def spoiled(candidate: Candidate, number: int) -> Candidate:
    """Return a candidate whose citation is wrong as a model's may be: words of its own, no such turn, one too far."""
    cited, *others = candidate.evidence
    wrong = (
        Citation(turn=cited.turn, quote=f"they say that {cited.quote}"),
        Citation(turn=cited.turn + 900, quote=cited.quote),
        Citation(turn=cited.turn + 1, quote=cited.quote),
    )[number % 3]
    return candidate.model_copy(update={"evidence": [wrong, *others]})


async def mended(client: ModelClient, session: Session) -> tuple[int, set[str], set[str]]:
    """Return how many candidates were refused, and the statements of the refused and of the mended ones."""
    extractor = ModelExtractor(client)
    first = list((await extractor.extract(session.window)).candidates)
    refused = session.ground([spoiled(one, number) for number, one in enumerate(first)]).rejections
    again = await extractor.repair(session.window, refused)
    kept = session.ground(list(again.candidates))
    return len(refused), {one.candidate.statement for one in refused}, {one.statement for one in kept.assertions}


async def test_a_model_mends_the_citations_that_were_refused_and_adds_nothing(states: Path) -> None:
    refused = mended_all = 0
    async with model() as client:
        for session in sessions(states, MENDED):
            count, shown, kept = await mended(client, session)
            assert kept <= shown, "nothing new, and no sentence changed"
            refused, mended_all = refused + count, mended_all + len(kept)
    assert refused >= 25
    assert mended_all >= 0.9 * refused


async def test_facts_of_a_german_conversation_are_told_in_english_with_the_german_words(states: Path) -> None:
    async with model() as client:
        for session in sessions(states, IN_GERMAN):
            found = await ModelExtractor(client, language="English").extract(session.window)
            kept = session.ground(list(found.candidates))
            assert kept.assertions
            assert not [one.detail for one in kept.rejections if one.reason == "quote_missing"]
            for one in kept.assertions:
                assert not {"der", "die", "das", "und", "ist", "Nutzerin"} & set(one.statement.split()), one.statement


async def test_everything_that_is_told_is_kept_with_the_words_that_say_it(states: Path) -> None:
    kept = selected = 0
    refused: list[Rejection] = []
    async with model() as client:
        for session in sessions(states, TOLD_WHOLE):
            everything = await ModelExtractor(client, extract=EXTRACT_EVERYTHING_PROMPT).extract(session.window)
            grounded = session.ground(list(everything.candidates))
            kept += len(grounded.assertions)
            refused += grounded.rejections
            usual = await ModelExtractor(client).extract(session.window)
            selected += len(session.ground(list(usual.candidates)).assertions)
    assert kept >= 1.5 * selected
    assert not [each.candidate.statement for each in refused if each.reason == "quote_missing"]
    assert len(refused) <= 0.15 * kept, "refused since the quotes do not say all of it; they may be mended afterwards"


async def recorded_findings(session: FindingSession, client: ModelClient) -> tuple[AgentFinding, ...]:
    extraction = await ModelExtractor(client).extract_findings(session.window, AGENTS, advice=session.advice)
    policy = FindingPolicy(AGENTS, ToolFindingPolicy.KEEP, advice=session.advice)
    return ground_findings(
        extraction.candidates,
        session.transcript,
        scope=Scope.user("lena"),
        session_id=session.name,
        policy=policy,
        privacy=Privacy(),
    ).findings


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.name)
async def test_a_model_finds_what_agents_found_and_nothing_else(session: FindingSession) -> None:
    async with model() as client:
        findings = await recorded_findings(session, client)
    statements = [finding.statement for finding in findings]
    assert all(any(words in statement for statement in statements) for words in session.expected)
    assert bool(statements) == bool(session.expected)
