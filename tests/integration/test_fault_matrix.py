"""Every fault of a model, met while extracting and while judging: what is told, what becomes of the session.

`docs/faults.md` says the same in words; its rows and the faults here are held together by a test.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from afterword import ProcessedSession
from afterword.cli.outcomes import outcome_lines
from afterword.cli.printing import print_lines
from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.model.client import ModelClient, ModelSettings
from afterword.extractors.model.extractor import ModelExtractor
from afterword.extractors.model.judge import ModelJudge
from afterword.extractors.model.modes import MODES, Mode
from afterword.extractors.testing import Json, Reply, ScriptedEndpoint, facts_reply
from afterword.facts.assertions import Kind
from afterword.facts.fact import Status
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import Failure, NotStarted, queued_sessions, run_batch
from afterword.pipeline.intake import Saved
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.store import lookup, runs, sessions
from afterword.store.costs import Spending
from afterword.store.database.engine import Store
from spoiling import FAULTS, Fault

MIRA = Scope.user("mira")
HOMES = {"monday": "Graz", "tuesday": "Linz"}
STARTED = {"monday": datetime(2026, 3, 2, 9, tzinfo=UTC), "tuesday": datetime(2026, 3, 3, 9, tzinfo=UTC)}
EXTRACTING, JUDGING = "extracting", "judging"

Dump = list[tuple[object, ...]]
Canonical = Callable[[Store, Scope], Awaitable[Dump]]

ONLY_TOOLS = {"unparted-calls"}
"""What only an answer by tool calls can suffer from."""


def cases() -> Iterator[ParameterSet]:
    """Yield each fault at each stage in every mode. Outside of the soak one mode of each is enough, in turn."""
    for place, fault in enumerate(FAULTS):
        modes = [mode for mode in MODES if mode == "tools" or fault not in ONLY_TOOLS]
        for number, stage in enumerate((EXTRACTING, JUDGING)):
            chosen = modes[(place + number) % len(modes)]
            for mode in modes:
                marks = () if mode == chosen else (pytest.mark.soak,)
                yield pytest.param(fault, stage, mode, id=f"{fault}-{stage}-{mode}", marks=marks)


def right_reply(request: Json) -> Reply:
    """What a good model answers: the home that the transcript names, and that a second home changes the first."""
    shown = request["messages"][1]["content"]
    if "<statements>" in shown:
        finding = {"pair": 1, "reason": "moved", "relation": "changes", "same_subject": True}
        return Reply(json.dumps({"findings": [finding]}))
    return facts_reply(*(_home(city) for city in HOMES.values() if said(city) in shown))


def said(city: str) -> str:
    return f"I live in {city} now."


def _home(city: str) -> Candidate:
    return Candidate(
        kind=Kind.ENTITY,
        subject="user",
        attribute="home_city",
        value=city,
        statement=f"The user lives in {city}.",
        evidence=[Citation(turn=1, quote=said(city))],
    )


def responder(fault: Fault | None, stage: str) -> Callable[[Json], Reply]:
    def respond(request: Json) -> Reply:
        right = right_reply(request)
        is_judging = any("<statements>" in str(message["content"]) for message in request["messages"])
        is_met = fault is not None and is_judging == (stage == JUDGING)
        return fault.spoilt(request, right) if fault is not None and is_met else right

    return respond


async def save(store: Store, session_id: str) -> None:
    """Keep a session as `record_session` does: saved and queued."""
    message = {"content": said(HOMES[session_id]), "source": "user", "type": "UserMessage"}
    state = {"type": "AssistantAgentState", "version": "1.0.0", "llm_context": {"messages": [message]}}
    at = STARTED[session_id]
    await store.write(
        lambda db: sessions.save_state(db, MIRA, session_id, component="AssistantAgent", state=state, at=at)
    )


async def run_queue(
    store: Store, base_url: str, mode: Mode, timeout_s: float = 20
) -> list[SessionOutcome | Failure | NotStarted]:
    """Do what `afterword run` does without a path."""
    chosen = ModelSettings("scripted", base_url, "key", timeout_s=timeout_s, max_retries=0, mode=mode)
    async with ModelClient(chosen) as client:
        return await run_batch(store, await waiting(store), extractor=ModelExtractor(client), judge=ModelJudge(client))


async def waiting(store: Store) -> list[Saved]:
    return [replace(one, started_at=STARTED[one.session_id]) for one in await queued_sessions(store)]


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which Monday is done and Tuesday is queued."""
    path = tmp_path_factory.mktemp("begun") / "store.db"

    async def prepare() -> None:
        with ScriptedEndpoint(right_reply) as healthy:
            async with Store(f"sqlite:///{path}") as store:
                await store.migrate()
                await save(store, "monday")
                await run_queue(store, healthy.base_url, "json_schema")
                await save(store, "tuesday")

    asyncio.run(prepare())
    return path


@pytest.fixture(scope="module")
def calm(begun: Path, canonical: Canonical, tmp_path_factory: pytest.TempPathFactory) -> Dump:
    """What the store holds where nothing went wrong."""

    async def run() -> Dump:
        path = shutil.copy(begun, tmp_path_factory.mktemp("calm"))
        with ScriptedEndpoint(right_reply) as healthy:
            async with Store(f"sqlite:///{path}") as store:
                await run_queue(store, healthy.base_url, "json_schema")
                return await canonical(store, MIRA)

    return asyncio.run(run())


async def homes(store: Store) -> dict[str, Status]:
    with store.reading() as db:
        held = lookup.read_facts(db, MIRA, at=datetime(2026, 4, 1, tzinfo=UTC))
    return {fact.value: fact.status for fact in held}


async def met(store: Store, fault: str, stage: str, mode: Mode) -> list[SessionOutcome | Failure | NotStarted]:
    """Run the queue against an endpoint with this fault."""
    endpoint = ScriptedEndpoint(responder(FAULTS[fault], stage))
    if fault == "no-connection":
        return await _unconnected(store, stage, mode)
    with endpoint:
        return await run_queue(store, endpoint.base_url, mode, timeout_s=0.3 if fault == "timeout" else 20)


async def _unconnected(store: Store, stage: str, mode: Mode) -> list[SessionOutcome | Failure | NotStarted]:
    """Meet an endpoint that is gone: from the beginning, or after the extraction."""
    endpoint = ScriptedEndpoint(responder(None, stage))
    with endpoint:
        gone = endpoint.base_url
    chosen = ModelSettings("scripted", gone, "key", max_retries=0, mode=mode)
    with ScriptedEndpoint(responder(None, stage)) as alive:
        reading = chosen if stage == EXTRACTING else replace(chosen, base_url=alive.base_url)
        async with ModelClient(reading) as first, ModelClient(chosen) as second:
            found = await waiting(store)
            return await run_batch(store, found, extractor=ModelExtractor(first), judge=ModelJudge(second))


@pytest.mark.parametrize(("fault", "stage", "mode"), list(cases()))
async def test_a_fault_is_told_leaves_the_session_queued_and_costs_no_fact(
    fault: str,
    stage: str,
    mode: Mode,
    begun: Path,
    calm: Dump,
    canonical: Canonical,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A fault must never look like "no facts"; and once the model is well again, it is as if it had never been ill."""
    async with AsyncExitStack() as stack:
        healthy = stack.enter_context(ScriptedEndpoint(right_reply))
        store = await stack.enter_async_context(Store(f"sqlite:///{shutil.copy(begun, tmp_path)}"))
        (ended,) = await met(store, fault, stage, mode)
        assert not isinstance(ended, NotStarted)
        print_lines(*outcome_lines([ProcessedSession(ended, Spending())], is_proposal=False))
        printed = " ".join(capsys.readouterr().out.split())
        error = FAULTS[fault].error
        if error is not None:
            assert isinstance(ended, Failure)
            assert ended.reason.startswith(f"{error}: ")
            assert f"failed: tuesday of {MIRA}: {error}: model 'scripted' at http" in printed
            assert "Linz" not in ended.reason
            with store.reading() as db:
                kept = sessions.find_session(db, MIRA, "tuesday")
                made = runs.read_runs(db, MIRA)
            assert kept is not None
            assert (kept.progress, kept.failure) == (sessions.Progress.FAILED, ended.reason)
            assert [one.session_id for one in await queued_sessions(store)] == ["tuesday"]
            assert (len(made), await homes(store)) == (1, {"Graz": Status.CURRENT})
            (ended,) = await run_queue(store, healthy.base_url, mode)
        assert isinstance(ended, SessionOutcome)
        assert ended.applied
        assert await queued_sessions(store) == []
        assert await homes(store) == {"Graz": Status.SUPERSEDED, "Linz": Status.CURRENT}
        if fault != "other-language":
            assert await canonical(store, MIRA) == calm


def test_the_page_on_faults_has_a_row_for_each_and_says_what_is_tested(repository: Path) -> None:
    page = (repository / "docs" / "faults.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if "| `" in line[:4]]
    assert all(len(row) == 5 for row in rows)
    told = {row[0].strip("`"): row for row in rows}
    assert list(told) == list(FAULTS)
    for name, fault in FAULTS.items():
        _, _, seen, becomes, _ = told[name]
        assert re.findall(r"`(\w+)`", seen) == ([fault.error] if fault.error else []), name
        assert becomes == ("queued" if fault.error else "done"), name
