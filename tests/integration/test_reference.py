"""The reference: what is made from the code is complete and in step."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from sqlmodel import SQLModel

import afterword
from afterword.agents import agent_framework
from afterword.client.access.keys import KeyedRequests, Keys
from afterword.client.access.webhooks import Webhooks
from afterword.client.agent_access import AgentAccess
from afterword.client.session_processing.background_processor import BackgroundProcessor
from afterword.errors import AfterwordError
from afterword.extractors import testing
from afterword.langgraph import FactStore
from afterword.recall.block import (
    CLOSING,
    FINDINGS_HEADING,
    FOR_QUESTION,
    FORMER_HEADING,
    HEADINGS,
    LONGEST_CONTEXT,
    LONGEST_TURN,
    PREFACE,
    TURNS_HEADING,
    line_on_missing_facts,
    opening_tag,
)
from afterword.server.mcp.tools import ASKING_TOOLS, READING_TOOLS
from afterword.setting_names import setting_fields, variable_of
from afterword.settings import Settings
from generator.command_pages import commands_and_options
from generator.reference import PARTS, with_part, write_pages
from generator.service_pages import openapi_document
from pages import all_pages


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the pages that are made from the code."""
    folder = tmp_path_factory.mktemp("pages")
    write_pages(folder)
    return folder


@pytest.mark.parametrize("name", PARTS)
def test_what_is_made_from_the_code_is_in_step(repository: Path, name: str) -> None:
    page = (repository / name).read_text(encoding="utf-8")
    assert page == with_part(page, PARTS[name]()), "run `make reference`"


def test_every_setting_has_a_type_a_default_a_variable_and_a_meaning(repository: Path) -> None:
    page = (repository / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    for name, setting in setting_fields(Settings):
        assert setting.description, name
        names = f"`{name.rpartition('.')[2]}`<br>`{variable_of(name)}`"
        row = re.search(rf"^\| {names} \| .+? \| .+? \| .+? \|$", page, re.MULTILINE)
        assert row, name


def test_every_command_and_option_is_documented(repository: Path) -> None:
    page = (repository / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    glance, _, options = page.partition("## Every option")
    for command, names in commands_and_options():
        section = re.search(rf"^###? `{command}`\n(.*?)(?=^##|\Z)", options, re.DOTALL | re.MULTILINE)
        assert section, command
        assert command.count(" ") != 1 or f"`{command}" in glance, command
        for name in names:
            assert re.search(rf"^\| `{re.escape(name)}` \| .*\| .+\.? \|$", section[1], re.MULTILINE), (
                f"{command}: {name}"
            )


def test_every_public_name_and_method_has_a_signature_and_a_text(written: Path) -> None:
    page = (written / "reference" / "api.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^###? `(\S+)`\n(.*?)(?=^###? `|\Z)", page, re.DOTALL | re.MULTILINE))
    names = [name for name in afterword.__all__ if not name.startswith("__")]
    for kind in (afterword.Afterword, afterword.ScopeMemory, afterword.FactMemory):
        names += [f"{kind.__name__}.{name}" for name in _own_methods(kind)]
    assert len(names) > 150
    for name in names:
        signature = re.match(rf"\s*```python\n.*\b{name.rpartition('.')[2]}\b", sections[name])
        assert signature, f"{name} has no signature"
        assert re.search(r"```\n\n\w", sections[name]), f"{name} has no docstring"


def test_errors_and_whatever_a_public_method_takes_or_returns_are_in_the_reference(written: Path) -> None:
    page = (written / "reference" / "api.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^## `(\S+)`", page, re.MULTILINE))
    waiting: list[type] = [AfterwordError]
    for error in waiting:
        waiting += error.__subclasses__()
    assert {error.__name__ for error in waiting if error.__module__.startswith("afterword.")} <= documented
    assert {"ScriptedEndpoint", "OracleExtractor", "facts_reply", "FactMemoryProvider", "FactStore"} <= documented
    assert {"Extractor", "Judge"} <= documented
    ours = _our_classes()
    exported = [getattr(module, name) for module in (afterword, testing, agent_framework) for name in _exported(module)]
    kinds = {kind for kind in exported if inspect.isclass(kind)}
    kinds |= {AgentAccess, Keys, Webhooks, KeyedRequests, BackgroundProcessor, FactStore}
    assert len(kinds) > 80
    for kind in kinds:
        for name in _own_methods(kind):
            method = getattr(kind, name)
            words = set(re.findall(r"\b[A-Z]\w+", " ".join(map(str, inspect.get_annotations(method).values()))))
            words -= _foreign_names(method)
            named = set(re.findall(r"`([A-Z]\w+)`", inspect.getdoc(method) or ""))  # among them what it raises
            assert (words | named) & ours <= documented, f"{kind.__name__}.{name}"


def test_whatever_the_pages_import_is_in_the_reference(written: Path, repository: Path) -> None:
    page = (written / "reference" / "api.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^## `(\S+)`", page, re.MULTILINE))
    imports = re.compile(r"^ *from (afterword[\w.]*) import (?:\(([^)]*)\)|(.+))$", re.MULTILINE)
    imported: set[str] = set()
    for path in all_pages(repository):
        for _, several, one in imports.findall(path.read_text(encoding="utf-8")):
            imported |= {name.split(" as ")[0].strip() for name in (several or one).split(",") if name.strip()}
    assert len(imported) > 20
    assert imported <= documented


def test_an_error_says_which_error_it_is_a_kind_of(written: Path) -> None:
    """Who catches `StoreError` wants to know what is caught."""
    page = (written / "reference" / "api.md").read_text(encoding="utf-8")
    assert "## `StoreMissing`\n\n```python\nclass StoreMissing(StoreError)\n```" in page


def test_a_class_without_a_signature_shows_its_fields(written: Path) -> None:
    page = (written / "reference" / "api.md").read_text(encoding="utf-8")
    assert "class Citation:\n    turn: int\n    quote: str\n```" in page
    assert "class Failure:\n    scope: Scope\n    session_id: str\n    reason: str\n```" in page
    assert "model_config" not in page


def _exported(module: ModuleType) -> list[str]:
    """Return what a module exports, else the classes and functions that it defines."""
    own = (name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__)
    return [name for name in getattr(module, "__all__", own) if name[0] != "_"]


def _our_classes() -> set[str]:
    """Return the names of all public classes of the package, whatever other tests have loaded."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in Path(afterword.__path__[0]).rglob("*.py")]
    classes = (node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    return {name for name in classes if name[0] != "_"}


def _foreign_names(method: Callable[..., object]) -> set[str]:
    """Return the names that the module of a method takes from elsewhere: a class of ours may have the same name."""
    names = vars(sys.modules[inspect.unwrap(method).__module__])
    return {name for name, value in names.items() if not _is_ours(value)}


def _is_ours(value: object) -> bool:
    return isinstance(value, type) and value.__module__.startswith("afterword.") and not value.__name__.startswith("_")


def _own_methods(kind: type) -> set[str]:
    """Return the public methods that the classes of this project give to a class."""
    own = (base for base in kind.__mro__ if base.__module__.startswith("afterword."))
    members = (pair for base in own for pair in vars(base).items())
    return {name for name, member in members if name[0] != "_" and callable(member) and not isinstance(member, type)}


def test_the_first_view_of_the_python_interface_names_methods_that_exist(repository: Path) -> None:
    page = (repository / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    methods = re.findall(r"`(\w+)\(", " ".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)))
    assert len(methods) > 30
    assert [name for name in methods if not hasattr(afterword.ScopeMemory, name)] == []


def test_every_operation_of_the_service_is_documented(written: Path) -> None:
    page = (written / "reference" / "rest.md").read_text(encoding="utf-8")
    document = openapi_document()
    for path, operations in document["paths"].items():
        for method in operations:
            assert f"## `{method.upper()} {path}`" in page
    for name in document["components"]["schemas"]:
        assert f"### `{name}`" in page


def test_every_tool_and_every_table_is_documented(written: Path) -> None:
    pages = written / "reference"
    tools = (pages / "mcp.md").read_text(encoding="utf-8")
    for name in (
        *READING_TOOLS,
        *ASKING_TOOLS,
        "forget",
        "memory",
        "memory://facts/{fact_id}",
        "memory://sessions/{session_id}",
    ):
        assert f"### `{name}`" in tools, name
    tables = (pages / "tables.md").read_text(encoding="utf-8")
    for name, columns in SQLModel.metadata.tables.items():
        assert f"## `{name}`" in tables
        assert all(f"| `{column.name}` |" in tables for column in columns.columns)


def test_the_page_of_the_block_shows_what_is_rendered(repository: Path) -> None:
    page = (repository / "docs" / "reference" / "block.md").read_text(encoding="utf-8")
    headings = (*HEADINGS.values(), FORMER_HEADING, TURNS_HEADING, FINDINGS_HEADING)
    for text in (opening_tag("LABEL"), FOR_QUESTION.strip(), PREFACE, CLOSING, line_on_missing_facts(2), *headings):
        assert text in page, text
    assert f"{LONGEST_TURN} characters of a turn and {LONGEST_CONTEXT} of the one before" in page
