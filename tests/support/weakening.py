"""A pytest plugin that takes one guard out: `python -m pytest -p weakening`, with AFTERWORD_TEST_WEAKENED set.

The variable is `MODULE:FUNCTION:RESULT`, for example `afterword.facts.removals:_is_fact_named_as_ended:true`. Wherever
the function was imported, one that only returns the result takes its place. `argument` returns the first argument,
`second` the second one, and `named_file` a temporary file with a name.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from tempfile import NamedTemporaryFile
from typing import Any

import pytest

RESULTS: dict[str, Callable[..., Any]] = {
    "none": lambda *_, **__: None,
    "true": lambda *_, **__: True,
    "false": lambda *_, **__: False,
    "empty": lambda *_, **__: [],
    "argument": lambda first, *_, **__: first,
    "second": lambda _, second, *__, **___: second,
    "named_file": NamedTemporaryFile,
}


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Replace the function in each module of afterword, and of the tests, that holds it."""
    module_name, path, result = os.environ["AFTERWORD_TEST_WEAKENED"].split(":")
    module = importlib.import_module(module_name)
    *owner, name = path.split(".")
    holder = getattr(module, owner[0]) if owner else module
    guard = inspect.getattr_static(holder, name)
    weak: Any = RESULTS[result]
    if inspect.iscoroutinefunction(guard):
        returned = weak

        async def weak(*arguments: Any, **options: Any) -> Any:
            return returned(*arguments, **options)

    if isinstance(guard, property):
        weak = property(weak)
    if owner:
        setattr(holder, name, weak)
        return
    # A function of the standard library keeps its meaning there and in pytest.
    others = [(name, module) for name, module in sys.modules.items() if not name.startswith("_pytest")]
    for other in [module for name, module in others if name.partition(".")[0] not in sys.stdlib_module_names]:
        for alias, held in list(vars(other).items()):
            if held is guard:
                setattr(other, alias, weak)
