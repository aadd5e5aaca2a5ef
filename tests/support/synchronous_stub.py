"""The types of the synchronous interface, written from the source of the asynchronous one."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from afterword.client import app
from afterword.client.access.keys import KeyedRequests, Keys
from afterword.client.access.webhooks import Webhooks
from afterword.client.agent_access import AgentAccess
from afterword.client.scope_memory import ScopeMemory
from afterword.client.session_processing.background_processor import BackgroundProcessor

WRAPPED = (app.Afterword, ScopeMemory, Keys, KeyedRequests, Webhooks, AgentAccess, BackgroundProcessor)
SYNC_NAMES = {cls.__name__: f"Sync{cls.__name__}" for cls in WRAPPED}
OWN_MEMBERS = {
    "Afterword": ["def __enter__(self) -> Self: ...", "def __exit__(self, *_: object) -> None: ..."],
    "ScopeMemory": ["@property\ndef scope(self) -> Scope: ..."],
}
HEAD = '"""Written by tests/integration/test_synchronous.py from the asynchronous classes. Do not edit."""\n'
ALWAYS = {
    "Self": "from typing import Self",
    "Scope": "from afterword.facts.scopes import Scope",
    "AbstractContextManager": "from contextlib import AbstractContextManager",
    "Portal": "from afterword.client.synchronous.portal import Portal",
}


class _Synchronous(ast.NodeTransformer):
    """Turns the annotations of the asynchronous classes into those of their counterparts."""

    def visit_Name(self, node: ast.Name) -> ast.Name:
        names = {**SYNC_NAMES, "AbstractAsyncContextManager": "AbstractContextManager"}
        return ast.Name(names.get(node.id, node.id))


def stub_text() -> str:
    """Return the text of wrappers.pyi, formatted."""
    imports, parts = dict(ALWAYS), list[str]()
    for cls in WRAPPED:
        members = [*OWN_MEMBERS.get(cls.__name__, []), *_members(cls, imports)]
        opening = "def __init__(self, wrapped: object, portal: Portal) -> None: ..."
        parts += [
            f"class {SYNC_NAMES[cls.__name__]}:",
            f"    {opening}",
            *("    " + line for member in members for line in member.splitlines()),
        ]
    (function,) = _definitions(app, "open")
    assert isinstance(function, ast.FunctionDef)
    _note_imports(app, function, imports)
    parts.append(_signature(function).replace("def open(", "def connect("))
    text = "\n".join([HEAD, *sorted(set(imports.values())), *parts])
    for arguments in (["check", "--fix", "--quiet", "--select", "I,F401"], ["format", "--quiet"]):
        ruff = [str(Path(sys.executable).with_name("ruff")), *arguments, "--stdin-filename", "wrappers.pyi", "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


def _members(cls: type, imports: dict[str, str]) -> Iterator[str]:
    seen = set[str]()
    for base in cls.__mro__[:-1]:
        module = sys.modules[base.__module__]
        (definition,) = _definitions(module, base.__name__)
        assert isinstance(definition, ast.ClassDef)
        for node in definition.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name not in seen | {""}:
                seen.add(node.name)
                if not node.name.startswith("_"):
                    _note_imports(module, node, imports)
                    yield _signature(node)


def _definitions(module: ModuleType, name: str) -> list[ast.stmt]:
    return [node for node in ast.parse(inspect.getsource(module)).body if getattr(node, "name", None) == name]


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    arguments, returns = node.args, node.returns
    arguments.defaults = [_default(value) for value in arguments.defaults]
    arguments.kw_defaults = [value and _default(value) for value in arguments.kw_defaults]
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    if "asynccontextmanager" in decorators:
        assert isinstance(returns, ast.Subscript)
        returns = ast.Subscript(ast.Name("AbstractContextManager"), returns.slice)
    head = "@property\n" if "property" in decorators else ""
    plain = ast.FunctionDef(node.name, arguments, [ast.Expr(ast.Constant(...))], [], returns, lineno=1)
    return head + ast.unparse(ast.fix_missing_locations(_Synchronous().visit(plain)))


def _default(value: ast.expr) -> ast.expr:
    return value if isinstance(value, ast.Constant) else ast.Constant(...)


def _note_imports(module: ModuleType, node: ast.AST, imports: dict[str, str]) -> None:
    """Note where the names in a signature come from: the module's own imports, or the module itself."""
    tree = ast.parse(inspect.getsource(module))
    names = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    for statement in ast.walk(tree):
        if isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                if alias.name in names and alias.name not in SYNC_NAMES:
                    imports[alias.name] = f"from {statement.module} import {alias.name}"
    for statement in tree.body:
        own = [ast.unparse(target) for target in statement.targets] if isinstance(statement, ast.Assign) else []
        own += [statement.name] if isinstance(statement, ast.ClassDef) else []
        imports.update({name: f"from {module.__name__} import {name}" for name in own if name in names})
