"""Let SQLite give the number of an erased run to no other run, as PostgreSQL does.

Before, a new run could get the number of a run that was forgotten. If a request with a key had made the erased run, the
new one could not be stored. And `undo` with the former number undid somebody else's run.
"""

import sqlalchemy as sa
from alembic import op

revision: str = "0025"
down_revision: str | None = "0024"

_NUMBERS = {"runs": "id", "audited_runs": "run_id", "moved_keys": "run_id", "webhooks": "seen_run_id"}
"""The columns that name runs, also erased ones."""


def upgrade() -> None:
    """Make the table of runs again with numbers that only grow. The first new number is above all that are known."""
    if op.get_bind().dialect.name != "sqlite":
        return
    op.execute("PRAGMA defer_foreign_keys=ON")  # other tables refer to runs, which are missing for a while
    op.execute("CREATE TABLE former_runs AS SELECT * FROM runs")
    op.drop_table("runs")
    _create_runs()
    columns = ", ".join(column["name"] for column in sa.inspect(op.get_bind()).get_columns("runs"))
    op.execute(f"INSERT INTO runs ({columns}) SELECT {columns} FROM former_runs")
    op.drop_table("former_runs")
    known = " UNION ALL ".join(f"SELECT max({column}) AS number FROM {table}" for table, column in _NUMBERS.items())
    op.execute("DELETE FROM sqlite_sequence WHERE name = 'runs'")
    op.execute(f"INSERT INTO sqlite_sequence (name, seq) SELECT 'runs', coalesce(max(number), 0) FROM ({known})")


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("session_pk", sa.Integer(), nullable=True),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("extractor", sa.String(), nullable=False),
        sa.Column("judge", sa.String(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("applied_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("undone_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("redone_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("caused_by", sa.Integer(), nullable=True),
        sa.Column("applied_revision", sa.Integer(), nullable=True),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("prompt_tokens", sa.Integer(), nullable=False),
        sa.Column("completion_tokens", sa.Integer(), nullable=False),
        sa.Column("counts", sa.JSON(), nullable=False),
        sa.Column("transcript", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["scope_id"], ["scopes.id"], name=op.f("fk_runs_scope_id_scopes")),
        sa.ForeignKeyConstraint(["session_pk"], ["sessions.id"], name=op.f("fk_runs_session_pk_sessions")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_runs_scope_id_source"), "runs", ["scope_id", "source"])
