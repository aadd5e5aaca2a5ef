"""Statements that a scope shared with another: the same words, said again under a former name, took those that moved."""

import uuid

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
_ASSERTION = (
    "act kind subject attribute subject_key attribute_key value statement speaker authority said_at utc_offset_s "
    "time_is_guess valid_from valid_to cue limited_to outcome is_flagged tags former_name recorded_at"
).replace(" ", ", ")
_VERDICT = "relation, reason, judge, joins_subjects, parts_subjects, extent, remainder, recorded_at"


def upgrade() -> None:
    """Give each scope a copy of what it shared. The facts of both are derived again by the upgrade."""
    run = op.get_bind().execute
    shared = run(sa.text(_SHARED)).all()
    copies: dict[tuple[int, str], str] = {}
    for tie in shared:
        place = tie.scope_id, tie.assertion_id
        if place not in copies:
            copies[place] = uuid.uuid4().hex[:20]
            session_id = tie.source.removeprefix(_SESSION) if tie.source.startswith(_SESSION) else tie.session_id
            new = {"new": copies[place], "old": tie.assertion_id, "scope": tie.scope_id, "session": session_id}
            run(
                sa.text(
                    f"INSERT INTO assertions (id, scope_id, session_id, {_ASSERTION}) "
                    f"SELECT :new, :scope, :session, {_ASSERTION} FROM assertions WHERE id = :old"
                ),
                new,
            )
            run(
                sa.text(
                    "INSERT INTO evidence (assertion_id, ordinal, kind, quote, session_id, turn, speaker, start) SELECT "
                    ":new, ordinal, kind, quote, CASE WHEN session_id IS NULL THEN NULL ELSE :session END, turn, "
                    "speaker, start FROM evidence WHERE assertion_id = :old"
                ),
                {name: new[name] for name in ("new", "old", "session")},
            )
        run(
            sa.text("UPDATE window_assertions SET assertion_id = :new WHERE window_id = :window AND assertion_id = :old"),
            {"new": copies[place], "window": tie.window_id, "old": tie.assertion_id},
        )
    for verdict in run(sa.text(_VERDICTS)).all():
        earlier, later = ((verdict.scope_id, end) for end in (verdict.earlier_id, verdict.later_id))
        if earlier not in copies and later not in copies:
            continue
        values = {"new": uuid.uuid4().hex, "old": verdict.key, "run": verdict.run_id, "scope": verdict.scope_id}
        ends = {"earlier": copies.get(earlier, earlier[1]), "later": copies.get(later, later[1])}
        run(
            sa.text(
                f"INSERT INTO verdicts (key, scope_id, earlier_id, later_id, {_VERDICT}) "
                f"SELECT :new, :scope, :earlier, :later, {_VERDICT} FROM verdicts WHERE key = :old"
            ),
            {name: value for name, value in (values | ends).items() if name != "run"},
        )
        run(
            sa.text("UPDATE run_verdicts SET verdict_key = :new WHERE run_id = :run AND verdict_key = :old"),
            {name: values[name] for name in ("new", "run", "old")},
        )
    # A fact has one row: the scope that was derived last has taken those of the other.
    wrong = "SELECT f.id FROM facts f JOIN assertions a ON a.id = f.id WHERE f.scope_id <> a.scope_id"
    for fact in run(sa.text(wrong)).all():
        run(sa.text("DELETE FROM fact_assertions WHERE fact_id = :id"), {"id": fact.id})
        run(sa.text("DELETE FROM facts WHERE id = :id"), {"id": fact.id})
    for scope_id in {key for tie in shared for key in (tie.scope_id, tie.owner_id)}:
        run(sa.text("UPDATE scopes SET derivation = 0 WHERE id = :id"), {"id": scope_id})
