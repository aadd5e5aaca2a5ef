"""Give each scope statements of its own, and move instants of tombstones from the future to the present.

Before, words that were said again in the former scope of a merge shared the statements that had moved. And people could
forget up to an instant at most a day ahead, so that what was said until then was lost.
"""

import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

revision: str = "0024"
down_revision: str | None = "0023"

_SESSION = "session:"
_SHARED = """
    SELECT w.id AS window_id, w.scope_id, w.source, a.id AS assertion_id, a.scope_id AS owner_id, a.session_id
    FROM window_assertions t JOIN windows w ON w.id = t.window_id JOIN assertions a ON a.id = t.assertion_id
    WHERE w.scope_id <> a.scope_id ORDER BY w.id, a.id
"""
_VERDICTS = """
    SELECT t.run_id, r.scope_id, v.key, v.earlier_id, v.later_id
    FROM run_verdicts t JOIN runs r ON r.id = t.run_id JOIN verdicts v ON v.key = t.verdict_key
    WHERE r.scope_id <> v.scope_id ORDER BY t.run_id, v.key
"""
_WRONG_FACTS = "SELECT f.id FROM facts f JOIN assertions a ON a.id = f.id WHERE f.scope_id <> a.scope_id"
_ASSERTION = (
    "act kind subject attribute subject_key attribute_key value statement speaker authority said_at utc_offset_s "
    "time_is_guess valid_from valid_to cue limited_to outcome is_flagged tags former_name recorded_at"
).replace(" ", ", ")
_VERDICT = "relation, reason, judge, joins_subjects, parts_subjects, extent, remainder, recorded_at"


_COPY_ASSERTION = f"""
    INSERT INTO assertions (id, scope_id, session_id, {_ASSERTION})
    SELECT :new, :scope, :session, {_ASSERTION} FROM assertions WHERE id = :old
"""
_COPY_EVIDENCE = """
    INSERT INTO evidence (assertion_id, ordinal, kind, quote, session_id, turn, speaker, start)
    SELECT :new, ordinal, kind, quote, CASE WHEN session_id IS NULL THEN NULL ELSE :session END, turn, speaker, start
    FROM evidence WHERE assertion_id = :old
"""
_COPY_VERDICT = f"""
    INSERT INTO verdicts (key, scope_id, earlier_id, later_id, {_VERDICT})
    SELECT :new, :scope, :earlier, :later, {_VERDICT} FROM verdicts WHERE key = :old
"""
_TIE_WINDOW = "UPDATE window_assertions SET assertion_id = :new WHERE window_id = :window AND assertion_id = :old"
_TIE_RUN = "UPDATE run_verdicts SET verdict_key = :new WHERE run_id = :run AND verdict_key = :old"

Copies = dict[tuple[int, str], str]
"""The id of each copied statement, by the key of its scope and the id of the original."""


def upgrade() -> None:
    """Give each scope a copy of the statements that it shared. The upgrade derives the facts of both scopes again."""
    shared = _execute(_SHARED).all()
    _copy_verdicts(_copy_statements(shared))
    # A fact has one row. The scope whose facts were derived last has taken the rows of the other scope.
    for fact in _execute(_WRONG_FACTS).all():
        _execute("DELETE FROM fact_assertions WHERE fact_id = :id", id=fact.id)
        _execute("DELETE FROM facts WHERE id = :id", id=fact.id)
    for scope_id in {key for tie in shared for key in (tie.scope_id, tie.owner_id)}:
        _execute("UPDATE scopes SET derivation = 0 WHERE id = :id", id=scope_id)
    now = datetime.now(UTC) if op.get_bind().dialect.name == "postgresql" else datetime.now(UTC).replace(tzinfo=None)
    tombstones = sa.table("tombstones", sa.column("until", sa.DateTime(timezone=True)))
    op.get_bind().execute(sa.update(tombstones).where(tombstones.c.until > now).values(until=now))


def _execute(statement: str, **values: Any) -> Any:
    return op.get_bind().execute(sa.text(statement), values)


def _copy_statements(shared: Iterable[Any]) -> Copies:
    copies: Copies = {}
    for tie in shared:
        place = tie.scope_id, tie.assertion_id
        if place not in copies:
            copies[place] = uuid.uuid4().hex[:20]
            session_id = tie.source.removeprefix(_SESSION) if tie.source.startswith(_SESSION) else tie.session_id
            copied = {"new": copies[place], "old": tie.assertion_id, "session": session_id}
            _execute(_COPY_ASSERTION, scope=tie.scope_id, **copied)
            _execute(_COPY_EVIDENCE, **copied)
        _execute(_TIE_WINDOW, new=copies[place], window=tie.window_id, old=tie.assertion_id)
    return copies


def _copy_verdicts(copies: Copies) -> None:
    for verdict in _execute(_VERDICTS).all():
        earlier, later = ((verdict.scope_id, end) for end in (verdict.earlier_id, verdict.later_id))
        if earlier in copies or later in copies:
            key = uuid.uuid4().hex
            ends = {"earlier": copies.get(earlier, earlier[1]), "later": copies.get(later, later[1])}
            _execute(_COPY_VERDICT, new=key, scope=verdict.scope_id, old=verdict.key, **ends)
            _execute(_TIE_RUN, new=key, run=verdict.run_id, old=verdict.key)
