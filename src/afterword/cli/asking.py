"""The commands that ask the store: facts, history, why, recall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from afterword import settings
from afterword.cli.output import (
    UsageInvalid,
    chosen_scope,
    console,
    day,
    fact_json,
    fact_table,
    instant,
    iso,
    needed_scope,
    print_json,
    run,
    table,
    told_skipped,
)
from afterword.cli.spending import spent_json
from afterword.composition import configured_tracker, open_embedder
from afterword.errors import NotFound
from afterword.extractors.model.embeddings import PURPOSE
from afterword.facts.fact import Fact
from afterword.facts.scopes import Scope
from afterword.pipeline.budget import Account
from afterword.store import costs, lookup, scope_rows, sessions
from afterword.store.costs import Spending
from afterword.store.database.engine import Store
from afterword.store.ledger import session_source
from afterword.store.reading.recall import Recall, search


def facts(
    user: str | None,
    scope: str | None,
    *,
    everything: bool,
    as_of: str | None,
    known_at: str | None,
    as_json: bool,
) -> None:
    """List the facts of a scope as at an instant, as known now or as believed at another."""
    whose, at = needed_scope(user, scope), instant(as_of)
    believed_at = instant(known_at) if known_at else None

    async def work(store: Store) -> list[Fact]:
        return await store.read(lambda db: lookup.read_facts(db, whose, at=at, known_at=believed_at))

    found = run(work)
    shown = found if everything else [fact for fact in found if fact.is_served]
    if as_json:
        print_json([fact_json(fact) for fact in shown])
        return
    hidden = f", {len(found) - len(shown)} more with --all" if len(found) > len(shown) else ""
    console().print(fact_table(shown, title=f"{whose}: {len(shown)} facts{hidden}"))


def history(fact_id: str, user: str | None, scope: str | None, *, as_json: bool) -> None:
    """Show every assertion of a fact and every verdict on them, in order."""
    whose = chosen_scope(user, scope)

    async def work(store: Store) -> dict[str, Any]:
        return await store.read(lambda db: _history(db, fact_id, whose))

    told = run(work)
    if as_json:
        print_json(told)
        return
    out = console()
    fact = told["fact"]
    out.print(f"{fact['statement']} ({fact['status']}, {fact['kind']} {fact['subject']}/{fact['attribute']})")
    rows = [(one["said_at"], one["session_id"], one["statement"], "; ".join(one["quotes"])) for one in told["said"]]
    out.print(table("said", ("when", "session", "statement", "words"), rows))
    judged = [(one["relation"], one["earlier"], one["later"], one["reason"], one["judge"]) for one in told["verdicts"]]
    out.print(table("judged", ("relation", "earlier", "later", "reason", "judge"), judged))


def _history(db: Any, fact_id: str, whose: Scope | None) -> dict[str, Any]:
    for one in [whose] if whose else scope_rows.read_scopes(db):
        try:
            fact = lookup.read_fact(db, one, fact_id, at=instant(None))
        except NotFound:
            if whose:
                raise
            continue
        verdicts = lookup.verdicts_on(db, one, fact.assertion_ids)
        ids = {each for verdict, _, _ in verdicts for each in (verdict.earlier_id, verdict.later_id)}
        said = lookup.assertions_by_id(db, one, [*fact.assertion_ids, *ids])
        return {
            "scope": str(one),
            "fact": fact_json(fact),
            "said": [
                {
                    "id": each,
                    "said_at": iso(said[each].said_at),
                    "session_id": said[each].session_id,
                    "statement": said[each].statement,
                    "quotes": [item.quote for item in said[each].evidence],
                }
                for each in fact.assertion_ids
            ],
            "verdicts": [
                {
                    "relation": str(verdict.relation),
                    "earlier": said[verdict.earlier_id].statement,
                    "later": said[verdict.later_id].statement,
                    "reason": verdict.reason,
                    "judge": verdict.judge,
                    "recorded_at": iso(recorded_at),
                    "runs": runs,
                }
                for verdict, recorded_at, runs in verdicts
            ],
        }
    raise NotFound(f"no fact {fact_id!r}; see `afterword facts --all`")


def why(session_id: str, user: str | None, scope: str | None, *, as_json: bool) -> None:
    """Show how a session was read, what was kept and what was dropped."""
    whose = chosen_scope(user, scope)

    async def work(store: Store) -> dict[str, Any]:
        return await store.read(lambda db: _why(db, session_id, whose))

    told = run(work)
    if as_json:
        print_json(told)
        return
    out = console()
    assumed = [f"{name} (assumed, never the owner)" for name in told["assumed"]]
    people = ", ".join([*told["humans"], *assumed]) or "nobody"
    out.print(f"{told['session_id']} of {told['scope']}: {told['progress']}, {told['turns']} turns ({told['layout']})")
    out.print(f"from {told['started_at']} to {told['ended_at']} (times: {told['time_basis']})")
    out.print(f"taken for people: {people}")
    if told["failure"]:
        out.print(f"failed: {told['failure']}")
    for reason, count in told["skipped"].items():
        out.print(told_skipped(reason, count))
    kept = [(one["id"][:8], one["statement"], _words(one)) for one in told["kept"]]
    out.print(table("kept", ("id", "statement", "words"), kept) if kept else "kept: nothing")
    dropped = [tuple(one.values()) for one in told["dropped"]]
    out.print(table("dropped", ("reason", "statement", "detail"), dropped) if dropped else "dropped: nothing")


def _words(fact: dict[str, Any]) -> str:
    return "; ".join(item["quote"] for item in fact["evidence"])


def _why(db: Any, session_id: str, whose: Scope | None) -> dict[str, Any]:
    found = sessions.read_sessions(db, scope=whose, session_id=session_id)
    if not found:
        raise NotFound(f"no session {session_id!r} is kept; see `afterword status`")
    if len(found) > 1:
        raise UsageInvalid(f"{len(found)} memories have a session {session_id!r}; say whose with --user or --scope")
    one = found[0]
    held = lookup.read_facts(db, one.scope, at=instant(None))
    spent = costs.spending_by_source(db, one.scope).get(session_source(session_id), Spending())
    return {
        "scope": str(one.scope),
        "session_id": one.session_id,
        "spent": spent_json(spent),
        "progress": str(one.progress),
        "failure": one.failure,
        "layout": one.layout,
        "turns": len(sessions.read_turns(db, one.scope, session_id)),
        "humans": list(one.humans),
        "assumed": list(one.assumed),
        "time_basis": one.time_basis,
        "started_at": iso(one.started_at),
        "ended_at": iso(one.ended_at),
        "skipped": dict(one.skipped),
        "kept": [fact_json(fact) for fact in held if any(item.session_id == session_id for item in fact.evidence)],
        "dropped": [
            {"reason": reason, "statement": statement, "detail": detail}
            for reason, statement, detail in lookup.rejections(db, one.scope, session_id)
        ],
    }


def recall(query: str, user: str | None, scope: str | None, *, limit: int, as_json: bool) -> None:
    """Show the current facts that bear on a question, best first."""
    whose = needed_scope(user, scope)
    configured = settings.load()

    async def work(store: Store) -> Recall:
        async with open_embedder(configured.embedding) as embedder:
            with Account(configured_tracker(configured, "rules"), store, whose, PURPOSE, PURPOSE).open():
                return await search(store, whose, query, at=instant(None), limit=limit, embedder=embedder, explain=True)

    found = run(work)
    parts: Sequence[Mapping[str, float]] = found.parts or [{} for _ in found.facts]
    scored = list(zip(found.facts, found.scores, parts, strict=True))
    if as_json:
        shown = [{**fact_json(fact), "score": score, "parts": why} for fact, score, why in scored]
        print_json({"stored": found.stored, "without_vector": found.without_vector, "facts": shown})
        return
    if found.without_vector:
        console().print(f"{found.without_vector} texts have no vector yet: `afterword schedule --once` makes them")
    if not found.facts:
        console().print("nothing is stored" if not found.stored else f"nothing of {found.stored} facts bears on that")
        return
    rows = [
        (f"{score:.2f}", fact.kind, fact.statement, day(fact.valid_from), _because(why)) for fact, score, why in scored
    ]
    console().print(table(f"{whose}: {query}", ("score", "kind", "statement", "since", "because"), rows))


def _because(parts: Mapping[str, float]) -> str:
    return ", ".join(f"{part} {share:.2f}" for part, share in sorted(parts.items(), key=lambda one: -one[1]))
