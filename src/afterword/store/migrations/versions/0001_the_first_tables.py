"""Create the first tables."""

import sqlalchemy as sa
from alembic import op

revision: str = "0001"
down_revision: str | None = None


def upgrade() -> None:
    """Apply this version."""
    op.create_table(
        "scopes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("policy", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_scopes")),
        sa.UniqueConstraint("tenant", "kind", "name", name=op.f("uq_scopes_tenant_kind_name")),
    )
    op.create_table(
        "assertions",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=True),
        sa.Column("act", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("attribute", sa.String(), nullable=False),
        sa.Column("subject_key", sa.String(), nullable=False),
        sa.Column("attribute_key", sa.String(), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.Column("statement", sa.String(), nullable=False),
        sa.Column("speaker", sa.String(), nullable=True),
        sa.Column("authority", sa.Integer(), nullable=False),
        sa.Column("said_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("time_is_guess", sa.Boolean(), nullable=False),
        sa.Column("valid_from", sa.DateTime(timezone=True), nullable=True),
        sa.Column("valid_to", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cue", sa.String(), nullable=True),
        sa.Column("limited_to", sa.String(), nullable=True),
        sa.Column("outcome", sa.String(), nullable=True),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["scope_id"], ["scopes.id"], name=op.f("fk_assertions_scope_id_scopes")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_assertions")),
    )
    with op.batch_alter_table("assertions", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_assertions_scope_id_subject_key_attribute_key"),
            ["scope_id", "subject_key", "attribute_key"],
            unique=False,
        )

    op.create_table(
        "sessions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("layout", sa.String(), nullable=True),
        sa.Column("time_basis", sa.String(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("humans", sa.JSON(), nullable=False),
        sa.Column("assumed", sa.JSON(), nullable=False),
        sa.Column("skipped", sa.JSON(), nullable=False),
        sa.Column("progress", sa.String(), nullable=False),
        sa.Column("failure", sa.String(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["scope_id"], ["scopes.id"], name=op.f("fk_sessions_scope_id_scopes")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("scope_id", "session_id", name=op.f("uq_sessions_scope_id_session_id")),
    )
    with op.batch_alter_table("sessions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_sessions_progress"), ["progress"], unique=False)

    op.create_table(
        "windows",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("first_turn", sa.Integer(), nullable=True),
        sa.Column("last_turn", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["scope_id"], ["scopes.id"], name=op.f("fk_windows_scope_id_scopes")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_windows")),
        sa.UniqueConstraint("scope_id", "source", "key", name=op.f("uq_windows_scope_id_source_key")),
    )
    op.create_table(
        "evidence",
        sa.Column("assertion_id", sa.String(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("quote", sa.String(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=True),
        sa.Column("turn", sa.Integer(), nullable=True),
        sa.Column("speaker", sa.String(), nullable=True),
        sa.Column("start", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["assertion_id"], ["assertions.id"], name=op.f("fk_evidence_assertion_id_assertions")),
        sa.PrimaryKeyConstraint("assertion_id", "ordinal", name=op.f("pk_evidence")),
    )
    op.create_table(
        "facts",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("lead_id", sa.String(), nullable=False),
        sa.Column("subject_key", sa.String(), nullable=False),
        sa.Column("attribute_key", sa.String(), nullable=False),
        sa.Column("spans", sa.JSON(), nullable=False),
        sa.Column("undone_as", sa.String(), nullable=False),
        sa.Column("undone_by", sa.String(), nullable=True),
        sa.Column("contested_by", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["id"], ["assertions.id"], name=op.f("fk_facts_id_assertions")),
        sa.ForeignKeyConstraint(["lead_id"], ["assertions.id"], name=op.f("fk_facts_lead_id_assertions")),
        sa.ForeignKeyConstraint(["scope_id"], ["scopes.id"], name=op.f("fk_facts_scope_id_scopes")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_facts")),
    )
    with op.batch_alter_table("facts", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_facts_scope_id_subject_key_attribute_key"),
            ["scope_id", "subject_key", "attribute_key"],
            unique=False,
        )

    op.create_table(
        "rejections",
        sa.Column("window_id", sa.Integer(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("statement", sa.String(), nullable=False),
        sa.Column("detail", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["window_id"], ["windows.id"], name=op.f("fk_rejections_window_id_windows")),
        sa.PrimaryKeyConstraint("window_id", "ordinal", name=op.f("pk_rejections")),
    )
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
        sa.Column("applied_revision", sa.Integer(), nullable=True),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("prompt_tokens", sa.Integer(), nullable=False),
        sa.Column("completion_tokens", sa.Integer(), nullable=False),
        sa.Column("counts", sa.JSON(), nullable=False),
        sa.Column("transcript", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["scope_id"], ["scopes.id"], name=op.f("fk_runs_scope_id_scopes")),
        sa.ForeignKeyConstraint(["session_pk"], ["sessions.id"], name=op.f("fk_runs_session_pk_sessions")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_runs_scope_id_source"), ["scope_id", "source"], unique=False)

    op.create_table(
        "states",
        sa.Column("session_pk", sa.Integer(), nullable=False),
        sa.Column("component", sa.String(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("saved_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["session_pk"], ["sessions.id"], name=op.f("fk_states_session_pk_sessions")),
        sa.PrimaryKeyConstraint("session_pk", name=op.f("pk_states")),
    )
    op.create_table(
        "turns",
        sa.Column("session_pk", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("speaker", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("said_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("message_id", sa.String(), nullable=True),
        sa.Column("time_is_guess", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["session_pk"], ["sessions.id"], name=op.f("fk_turns_session_pk_sessions")),
        sa.PrimaryKeyConstraint("session_pk", "number", name=op.f("pk_turns")),
    )
    op.create_table(
        "verdicts",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("earlier_id", sa.String(), nullable=False),
        sa.Column("later_id", sa.String(), nullable=False),
        sa.Column("relation", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("judge", sa.String(), nullable=False),
        sa.Column("joins_subjects", sa.Boolean(), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["earlier_id"], ["assertions.id"], name=op.f("fk_verdicts_earlier_id_assertions")),
        sa.ForeignKeyConstraint(["later_id"], ["assertions.id"], name=op.f("fk_verdicts_later_id_assertions")),
        sa.ForeignKeyConstraint(["scope_id"], ["scopes.id"], name=op.f("fk_verdicts_scope_id_scopes")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_verdicts")),
    )
    with op.batch_alter_table("verdicts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_verdicts_scope_id_earlier_id"), ["scope_id", "earlier_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_verdicts_scope_id_later_id"), ["scope_id", "later_id"], unique=False)

    op.create_table(
        "window_assertions",
        sa.Column("window_id", sa.Integer(), nullable=False),
        sa.Column("assertion_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["assertion_id"], ["assertions.id"], name=op.f("fk_window_assertions_assertion_id_assertions")
        ),
        sa.ForeignKeyConstraint(["window_id"], ["windows.id"], name=op.f("fk_window_assertions_window_id_windows")),
        sa.PrimaryKeyConstraint("window_id", "assertion_id", name=op.f("pk_window_assertions")),
    )
    with op.batch_alter_table("window_assertions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_window_assertions_assertion_id"), ["assertion_id"], unique=False)

    op.create_table(
        "fact_assertions",
        sa.Column("fact_id", sa.String(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("assertion_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["assertion_id"], ["assertions.id"], name=op.f("fk_fact_assertions_assertion_id_assertions")
        ),
        sa.ForeignKeyConstraint(["fact_id"], ["facts.id"], name=op.f("fk_fact_assertions_fact_id_facts")),
        sa.PrimaryKeyConstraint("fact_id", "ordinal", name=op.f("pk_fact_assertions")),
        sa.UniqueConstraint("assertion_id", name=op.f("uq_fact_assertions_assertion_id")),
    )
    op.create_table(
        "run_verdicts",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("verdict_key", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_run_verdicts_run_id_runs")),
        sa.ForeignKeyConstraint(["verdict_key"], ["verdicts.key"], name=op.f("fk_run_verdicts_verdict_key_verdicts")),
        sa.PrimaryKeyConstraint("run_id", "verdict_key", name=op.f("pk_run_verdicts")),
    )
    with op.batch_alter_table("run_verdicts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_run_verdicts_verdict_key"), ["verdict_key"], unique=False)

    op.create_table(
        "run_windows",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("window_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_run_windows_run_id_runs")),
        sa.ForeignKeyConstraint(["window_id"], ["windows.id"], name=op.f("fk_run_windows_window_id_windows")),
        sa.PrimaryKeyConstraint("run_id", "ordinal", name=op.f("pk_run_windows")),
    )
    with op.batch_alter_table("run_windows", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_run_windows_window_id"), ["window_id"], unique=False)
