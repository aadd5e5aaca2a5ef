"""Every code block of every page runs or is checked: here, or in a test of its own page."""

from __future__ import annotations

import ast
import asyncio
import configparser
import json
import shutil
import tomllib
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from inspect import CO_COROUTINE
from pathlib import Path
from typing import Any

import pytest
import yaml
from autogen_ext.models.replay import ReplayChatCompletionClient

import afterword
from afterword.demo.story import CAPABILITIES
from afterword.extractors.testing import ScriptedEndpoint, facts_reply
from afterword.setting_names import unknown_name_message
from afterword.settings import Settings
from commands import Commands
from framework_agents import ScriptedClient
from observing import listening
from page_blocks import Block, PageRunner, read_blocks
from pages import all_pages

REPOSITORY = Path(__file__).parent.parent.parent
TESTED_ELSEWHERE = {
    "README.md": "test_documents.py",
    "docs/testing.md": "test_testing_docs.py",
    "docs/tutorial.md": "test_guides.py",
    "docs/guides": "test_guides.py",
}
"""Pages, or folders of pages, whose blocks have a test of their own."""

RUNNABLE = ("bash", "python", "typescript")


class FragmentRunner(PageRunner):
    """Runs the blocks of a page whose Python is part of an asynchronous program.

    Blocks in a language of `elsewhere` have a test of their own.
    """

    elsewhere: Collection[str] = ()

    def _run_block(self, block: Block, shown: str | None) -> None:
        if block.language in self.elsewhere:
            return
        if block.language != "python" or block.title:
            super()._run_block(block, shown)
            return
        code = compile(block.text, f"line {block.line}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        with self._as_reader():
            pending = eval(code, self._session)
            if code.co_flags & CO_COROUTINE:
                asyncio.run(pending)
        if shown is not None:
            self._compare(shown, self.captured.readouterr().out)


@dataclass(frozen=True)
class Fragments:
    """What the blocks of a page need that the page does not show, and what is not run.

    `not_run` are the first words of commands and why they are not run. `stand_ins` are commands, and what is run
    instead of them. `prepare` returns the names that Python blocks use, `finish` uses what they made. `elsewhere` are
    languages, and the tests of the blocks in them.
    """

    not_run: Mapping[str, str] = field(default_factory=dict)
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[PageRunner], Mapping[str, Any]] = lambda _: {}
    finish: Callable[[Mapping[str, Any]], Coroutine[Any, Any, None]] | None = None
    elsewhere: Mapping[str, str] = field(default_factory=dict)


def autogen_client(_: PageRunner) -> Mapping[str, Any]:
    return {"client": ReplayChatCompletionClient(["Noted."] * 5, model_info={**CAPABILITIES, "function_calling": True})}


def framework_client(_: PageRunner) -> Mapping[str, Any]:
    return {"client": ScriptedClient("Noted."), "user_of_session": lambda session: "mira"}


async def start_and_stop_the_service(names: Mapping[str, Any]) -> None:
    async with names["lifespan"](None):
        assert names["asyncio"].all_tasks()


def a_finding(runner: PageRunner) -> Mapping[str, Any]:
    with runner.commands.surroundings({}), afterword.connect() as app:
        memory = app.scope("default/project/apollo")
        memory.set_finding_policy(["researcher"])
        memory.save_finding("SQLite holds a million rows easily.", agent="researcher", topic="SQLite")
        (finding,) = memory.findings().findings
    runner.replaced["1f3a9c"] = finding.id
    return {}


def a_saved_session_and_a_model(runner: PageRunner) -> Mapping[str, Any]:
    folder = runner.commands.folder
    shutil.copytree(REPOSITORY / "configs", folder / "configs")
    messages = [{"content": "I live in Bergen.", "source": "user", "type": "UserMessage"}]
    (folder / "saved" / "mira").mkdir(parents=True)
    state = {"type": "AssistantAgentState", "llm_context": {"messages": messages}}
    (folder / "saved" / "mira" / "monday.json").write_text(json.dumps(state))
    return {}


def own_telemetry(_: PageRunner) -> Mapping[str, Any]:
    # A process keeps the providers that are set first. Those of the page would deafen the tests that listen later.
    with listening():
        return {}


PAGES = {
    "docs/agent-framework.md": Fragments({"pip": "the index"}, {}, framework_client, start_and_stop_the_service),
    "docs/explanations/recall.md": Fragments(),
    "docs/explanations/time.md": Fragments(),
    "docs/explanations/undo.md": Fragments(),
    "docs/findings.md": Fragments(prepare=a_finding),
    "docs/observability.md": Fragments(prepare=own_telemetry),
    "docs/quality.md": Fragments(
        {
            "make": "test_eval.py scores the same recording",
            "afterword eval": "the scenarios lie beside the checkout; test_asking.py does the same",
        }
    ),
    "docs/reference/python.md": Fragments(prepare=autogen_client),
    "docs/reference/settings.md": Fragments(prepare=a_saved_session_and_a_model),
    "docs/service.md": Fragments(
        {"pip": "the index", "echo": "a password", "docker": "no daemon", "curl": "no daemon"},
        {
            "afterword serve": "afterword serve --help",
            "afterword webhooks test": "afterword webhooks test --help",
            "afterword webhooks retry": "afterword webhooks retry --help",
            "afterword webhooks remove": "afterword webhooks remove --help",
        },
        elsewhere={"python": "test_service_process.py, test_webhooks.py", "typescript": "test_service_process.py"},
    ),
}


@pytest.mark.filterwarnings("ignore:Resolved model mismatch")
@pytest.mark.parametrize("name", PAGES)
def test_every_block_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = PAGES[name]
    runner = FragmentRunner(Commands(tmp_path, monkeypatch, capsys), capsys, page.not_run, page.stand_ins)
    runner.elsewhere = page.elsewhere
    runner._session |= page.prepare(runner)
    with ScriptedEndpoint(lambda _: facts_reply()) as model:
        runner.environment["OPENAI_BASE_URL"] = model.base_url
        runner.run(REPOSITORY / name)
    if page.finish is not None:
        with runner.commands.surroundings({}):
            asyncio.run(page.finish(runner._session))


def test_no_page_is_left_out() -> None:
    known = {*PAGES, *TESTED_ELSEWHERE}
    for page in all_pages(REPOSITORY):
        if any(block.language in RUNNABLE for block in read_blocks(page)):
            path = page.relative_to(REPOSITORY)
            assert known & {path.as_posix(), path.parent.as_posix()}, f"{path} has blocks that no test runs"


def test_every_block_has_a_language_that_is_checked() -> None:
    for page in all_pages(REPOSITORY):
        for block in read_blocks(page):
            where = f"{page.name}, line {block.line}"
            match block.language:
                case "json":
                    json.loads(block.text)
                case "yaml":
                    yaml.safe_load(block.text)
                case "ini":  # a unit of systemd
                    configparser.ConfigParser().read_string(block.text, where)
                case "toml":
                    profile = tomllib.loads(block.text)
                    assert unknown_name_message(Settings, {}, profile) is None, where
                    Settings.model_validate(profile)
                case language:
                    assert language in ("text", *RUNNABLE), where
