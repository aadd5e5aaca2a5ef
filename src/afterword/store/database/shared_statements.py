"""Compiled statements that all engines of this process share: compiling one takes longer than executing it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.engine import Dialect
from sqlalchemy.util import LRUCache

CAPACITY = 1000


@dataclass(frozen=True, slots=True)
class _SharedStatements:
    """Statements in the dialect that they were compiled for."""

    dialect: Dialect
    cache: LRUCache[Any, Any] = field(default_factory=lambda: LRUCache(CAPACITY))


_shared: dict[tuple[object, ...], _SharedStatements] = {}


def share_statements(engine: Engine) -> Engine:
    """Let a new engine use the statements that others have compiled for the same server, and return it.

    A dialect knows its server when its first connection is made, so an engine offers its statements to others then:
    this listener stands behind SQLAlchemy's own, which initialises the dialect.
    """
    url = engine.url
    server = (url.drivername, url.host, url.port, url.query.get("host"))
    statements = _shared.get(server)
    if statements is None:
        statements = own = _SharedStatements(engine.dialect)
        event.listen(engine, "connect", lambda *_: _shared.setdefault(server, own))
    engine.dialect = statements.dialect
    engine.update_execution_options(compiled_cache=statements.cache)
    return engine
