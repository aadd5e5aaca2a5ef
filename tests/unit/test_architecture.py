"""The shape of the code, measured: sizes, directions, what no path may do."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import JSON, LargeBinary, String, TypeDecorator
from sqlalchemy.types import TypeEngine
from sqlmodel import SQLModel

from afterword.store.forgetting.erasable_tables import ERASABLE_TABLES

LONGEST_MODULE, LONGEST_FUNCTION, MOST_MODULES, MOST_BRANCHES, BROAD_EXCEPTS = 400, 60, 20, 12, 2


@pytest.fixture(scope="module")
def modules(repository: Path) -> dict[Path, ast.Module]:
    found = sorted((repository / "src" / "afterword").rglob("*.py"))
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in found}


def test_modules_and_functions_stay_small(modules: dict[Path, ast.Module]) -> None:
    for path, tree in modules.items():
        if "versions" in path.parts:
            continue  # a migration is as long as the tables that it makes
        assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_MODULE, path
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert (node.end_lineno or node.lineno) - node.lineno < LONGEST_FUNCTION, f"{path}: {node.name}"


def test_a_folder_holds_few_modules(modules: dict[Path, ast.Module]) -> None:
    folders = Counter(path.parent for path in modules if path.name != "__init__.py" and "versions" not in path.parts)
    assert max(folders.values()) <= MOST_MODULES, folders.most_common(3)


def test_no_function_has_many_branches(modules: dict[Path, ast.Module]) -> None:
    """Ruff counts branches without the operands of `and` and `or`, of which the checks of texts mostly consist."""
    branches = ast.If | ast.IfExp | ast.For | ast.AsyncFor | ast.While | ast.ExceptHandler | ast.match_case
    for path, tree in modules.items():
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                nodes = list(_nodes_of_function(function))
                operands = sum(len(node.values) - 1 for node in nodes if isinstance(node, ast.BoolOp))
                conditions = sum(len(node.ifs) for node in nodes if isinstance(node, ast.comprehension))
                total = 1 + sum(isinstance(node, branches) for node in nodes) + operands + conditions
                assert total <= MOST_BRANCHES, f"{path}: {function.name}"


def _nodes_of_function(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of the functions inside it."""
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
            yield from _nodes_of_function(node)


def test_broad_excepts_are_counted(modules: dict[Path, ast.Module]) -> None:
    broad = [
        f"{path.name}:{node.lineno}"
        for path, tree in modules.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and (node.type is None or "Exception" in _names(node.type))
    ]
    assert len(broad) <= BROAD_EXCEPTS, broad


def _names(node: ast.expr) -> set[str]:
    """Return the names of an expression; `BaseException` counts as `Exception`."""
    return {each.id.removeprefix("Base") for each in ast.walk(node) if isinstance(each, ast.Name)}


def test_what_is_computed_from_words_is_cached_where_forgetting_clears_it(modules: dict[Path, ast.Module]) -> None:
    """`lru_cache` and `cache` hold no texts of people: `text_cache` does, which forgetting clears."""
    of_texts = {
        node.name
        for path, tree in modules.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any(re.match(r"(?:functools\.)?(?:lru_)?cache\b", ast.unparse(each)) for each in node.decorator_list)
        and any("str" in ast.unparse(each.annotation) for each in node.args.args if each.annotation is not None)
    }
    assert of_texts == {
        *(
            "load_prompt",
            "texts_by_key",
            "compiled_expression",
            "zone_by_name",
        ),  # names of files, of zones, and expressions
        *("_expressions", "_possible_patterns"),  # phrases of the settings, and hints of patterns
        "_plain_character",  # single characters
        *("_alias", "insert_missing_statement", "_select_where_in"),  # names of tables and columns
    }


def test_no_path_deletes_an_assertion(modules: dict[Path, ast.Module]) -> None:
    """Nothing is lost: what is deleted are derived facts, vectors, the former reading of a turn, answers
    to repeated requests, and webhooks; only forgetting erases."""
    deleted = {
        ast.unparse(node.args[0])
        for path, tree in modules.items()
        if path.parts[-3:-1] != ("store", "forgetting")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "delete" and node.args
    }
    assert deleted == {
        *("FactRow", "FactAssertionRow", "ScopeChangeRow", "TurnRow", "VectorRow"),
        *("RepeatableRequestRow", "WebhookRow", "WebhookPostRow"),
    }


def plain(kind: TypeEngine[object]) -> TypeEngine[object]:
    return kind.impl_instance if isinstance(kind, TypeDecorator) else kind


def test_forgetting_knows_every_column_that_may_hold_words() -> None:
    """A new table is on the list of holdings, or words in it would be left when somebody asks for them to be gone."""
    listed = {holding.table.__tablename__: holding for holding in ERASABLE_TABLES}
    for name, table in SQLModel.metadata.tables.items():
        texts = {column.name for column in table.columns if isinstance(plain(column.type), String | JSON | LargeBinary)}
        assert name in listed, f"{name} is missing in store/forgetting/erasable_tables.py"
        assert set(listed[name].words) | set(listed[name].names) == texts, name
        assert not listed[name].words or listed[name].of_scope is not None, f"{name}: its words are never erased"


def test_the_root_folders_lead_into_the_package(repository: Path) -> None:
    for name in ("pipeline", "extractors", "store", "agents"):
        link = repository / name
        if link.is_symlink():
            assert link.resolve() == repository / "src" / "afterword" / name


def test_nothing_names_a_machine_or_an_index(repository: Path) -> None:
    pins = (repository / "constraints.txt").read_text(encoding="utf-8")
    assert "--hash=sha256:" in pins
    assert not re.search(r"https?://|--index-url|--find-links| @ ", pins)
    assert not list(repository.glob("uv.lock"))


def test_the_contributors_page_names_modules_and_functions_that_exist(repository: Path) -> None:
    page = (repository / "docs" / "contributing.md").read_text(encoding="utf-8")
    package = repository / "src" / "afterword"
    files = [path for path in package.rglob("*") if path.suffix in (".py", ".toml", ".html")]
    known = {word for path in files for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}
    for name in re.findall(r"`(_?[A-Za-z]+(?:_\w+|[a-z][A-Z]\w+))`", page):
        assert name in known, name
    for path in re.findall(r"`([a-z_/]+(?:\.py|/))`", page):
        assert (package / path).exists() or (repository / path).exists(), path
    steps = re.findall(r"^\| \d+ \|.*\| `(\S+)` \| `(\w+)` \|$", page, re.MULTILINE)
    assert len(steps) == 10
    for path, name in steps:
        assert re.search(rf"(def|class) {name}\b", (package / path).read_text(encoding="utf-8")), f"{path}: {name}"


def test_the_contributors_page_names_the_module_of_every_command(repository: Path) -> None:
    page = (repository / "docs" / "contributing.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `cli/(\w+)\.py` \| (.*) \|$", page, re.MULTILINE))
    assert len(rows) == 8
    for path in (repository / "src" / "afterword" / "cli").glob("*.py"):
        source = path.read_text(encoding="utf-8")
        commands = re.findall(r'\bapp\.(?:command|add_typer)\((?:\w+, )?name="(\w+)"\)', source)
        assert sorted(re.findall(r"`(\w+)`", rows.get(path.stem, ""))) == sorted(commands), path.name


OUTSIDE: dict[str, frozenset[str]] = {
    # The command line renders the door; some commands have a package of their own.
    "cli": frozenset({"afterword.cli", "afterword.client", "afterword.errors", "afterword.settings",
                      "afterword.setting_sections", "afterword.server",
                      "afterword.evaluation", "afterword.doctor", "afterword.demo"}),
    # The services render it too.
    "server": frozenset({"afterword.server", "afterword.client", "afterword.errors", "afterword.setting_sections",
                         "afterword.settings"}),
    # The adapter for another framework has no name at the top: it needs an extra.
    "examples": frozenset({"afterword.agents.agent_framework"}),
}  # fmt: skip
"""What may be imported besides the public names of `afterword`, by module or package."""


def imports_outside(path: Path, allowed: frozenset[str]) -> list[str]:
    """Return the modules of afterword that a file imports, and may not."""
    modules: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "afterword":
            modules += [f"afterword.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.append(node.module)
    return [name for name in modules if name.startswith("afterword.") and not _is_allowed(name, allowed)]


def _is_allowed(name: str, allowed: frozenset[str]) -> bool:
    import afterword

    is_public = name.removeprefix("afterword.") in afterword.__all__
    return is_public or any(name == prefix or name.startswith(f"{prefix}.") for prefix in allowed)


@pytest.mark.parametrize("folder", OUTSIDE)
def test_what_stands_outside_imports_the_door_alone(repository: Path, folder: str) -> None:
    """Programs need nothing below the public names, and the command line nothing below the door."""
    root = repository / "src" / "afterword" / folder if folder in ("cli", "server") else repository / folder
    found = {path.name: names for path in root.rglob("*.py") if (names := imports_outside(path, OUTSIDE[folder]))}
    assert not found
