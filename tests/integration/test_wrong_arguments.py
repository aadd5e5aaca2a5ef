"""Every argument of the Python interface with values that do not fit: each gives an error that says what does."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.replay import ReplayChatCompletionClient

import afterword
from afterword import Afterword, ProcessingOptions, ScopeMemory
from afterword.client.access.keys import Keys
from afterword.client.access.webhooks import Webhooks
from afterword.client.agent_access import AgentAccess
from afterword.errors import AfterwordError, ArgumentInvalid
from afterword.pipeline.background.halt import Halt
from afterword.settings import Settings
from afterword.store.agent_requests import RequestOutcome, RequestStatus
from batches import state

DOORS: dict[type, Callable[[Afterword], Any]] = {
    Afterword: lambda app: app,
    ScopeMemory: lambda app: app.user("mira"),
    AgentAccess: lambda app: app.user("mira").for_agent(),
    Keys: lambda app: app.keys,
    Webhooks: lambda app: app.webhooks,
}
METHODS = [
    pytest.param(door, name, id=f"{door.__name__}.{name}")
    for door in DOORS
    for name, method in inspect.getmembers(door, inspect.isfunction)
    if not name.startswith("_") and len(inspect.signature(method).parameters) > 1
]
WRONG: tuple[Any, ...] = (None, "", 0, -1, True, 10**40, [], [None], object())
GIVEN: dict[str, Any] = {
    "agent_or_team": AssistantAgent("helper", ReplayChatCompletionClient([])),
    "outcome": RequestOutcome(RequestStatus.HELD, 1),
    "state": state("I live in Porto."),
    "path": "exported",
    "kind": "mem0",
    "decision": "approve",
    "policy": "auto",
    "zone": "UTC",
    "scope": "default/user/mira",
    "into": "default/user/nora",
    "to": "default/user/zoe",
    "are_told": True,
    "run_id": 1,
    "url": "https://example.com/",
    "halt": Halt(),
}
GIVEN["halt"].stop("the test needs no schedule")


@pytest.fixture
async def app(tmp_path: Path, sqlite_template: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Afterword]:
    monkeypatch.chdir(tmp_path)
    shutil.copy(sqlite_template, tmp_path / "afterword.db")
    async with afterword.open(f"sqlite:///{tmp_path}/afterword.db", settings=Settings()) as opened:
        yield opened


async def outcome(method: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return what the method returns, or one of afterword's own errors. Any other error fails the test."""
    try:
        called = method(**arguments)
        if hasattr(called, "__aenter__"):
            async with called:
                return None
        return await called if inspect.isawaitable(called) else called
    except AfterwordError as error:
        return error


@pytest.mark.parametrize(("door", "name"), METHODS)
async def test_no_argument_gives_a_foreign_error(app: Afterword, door: type, name: str) -> None:
    """What the annotation does not allow is refused, and never taken for something else."""
    _, *parameters = inspect.signature(getattr(door, name)).parameters.values()
    for parameter, wrong in ((each, wrong) for each in parameters for wrong in WRONG if wrong is not each.default):
        if not (known := (await app.user("mira").facts()).facts):
            await app.user("mira").remember("I like tea.")
            known = (await app.user("mira").facts()).facts
        required = [each.name for each in parameters if each.default is each.empty or each.name == "halt"]
        fitting = {"fact_id": known[0].id, **GIVEN}
        arguments = {needed: fitting.get(needed, "tea") for needed in required} | {parameter.name: wrong}
        result = await outcome(getattr(DOORS[door](app), name), arguments)
        what, annotation = f"{parameter.name}={wrong!r}", str(parameter.annotation)
        is_refused = isinstance(result, ArgumentInvalid) and str(result).startswith(f"{parameter.name}=")
        if type(wrong) is object or (wrong is None and "None" not in annotation and annotation != "Source"):
            assert is_refused, what
        if wrong is True and "bool" not in annotation:
            assert isinstance(result, AfterwordError), what


async def test_the_error_says_what_was_given_and_what_to_give(app: Afterword) -> None:
    mira: Any = app.user("mira")
    for called, message in (
        (lambda: mira.search(None), "query=None is not possible; give str"),
        (lambda: mira.facts(limit="5"), "limit='5' is not possible; give int | None"),
        (lambda: mira.facts(limit=True), "limit=True is not possible; give int | None"),
        (lambda: mira.facts(as_of=5), "as_of=5 is not possible; give datetime | date | str | None"),
        (lambda: mira.queue({}, session_id="a", humans="lena"), "humans='lena' is not possible; give Collection[str]"),
        (lambda: mira.forget(everything="no"), "everything='no' is not possible; give bool"),
        (lambda: mira.process("x", options=5), "options=5 is not possible; give ProcessingOptions | None"),
        (lambda: mira.resume(5, session_id="a"), "agent_or_team=5 is not possible; give an agent or a team"),
        (lambda: mira.facts(status=[]), "status='' is unknown; use one of "),
        (lambda: mira.context(most_left_out=-1), "most_left_out=-1 is below 0; "),
        (lambda: mira.for_agent().findings(limit=-1), "limit=-1 is not possible; "),
        (lambda: mira.outdated(extractor="Rules"), "extractor='Rules' is unknown; use rules or model"),
        (lambda: app.run_pending(options=ProcessingOptions(extractor="gpt")), "extractor='gpt' is unknown; "),
        (lambda: mira.set_zone(""), "'' is no time zone; "),
    ):
        with pytest.raises(ArgumentInvalid) as raised:
            await called()
        assert str(raised.value).startswith(message)
    with pytest.raises(ArgumentInvalid, match=r"agent_or_team=None .* give an agent or a team$"):
        mira.record(None, session_id="a")
    with pytest.raises(TypeError, match="colour"):
        await mira.facts(colour="red")


def test_the_interface_without_await_gives_the_same_errors(tmp_path: Path) -> None:
    with afterword.connect(f"sqlite:///{tmp_path}/afterword.db", settings=Settings()) as app:
        mira: Any = app.user("mira")
        with pytest.raises(ArgumentInvalid, match="query=None is not possible; give str"):
            mira.search(None)
        with pytest.raises(ArgumentInvalid, match="name=None is not possible; give str"):
            app.user(None)  # type: ignore[arg-type]
