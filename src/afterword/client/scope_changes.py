"""What people and applications change in one scope: facts, runs, decisions, the policy. Each change is a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, time
from typing import Any

from afterword.client.arguments import Instant, Several, choices, instant, tag_names
from afterword.client.findings.scope_findings import ScopeFindings
from afterword.errors import ArgumentInvalid, NotFound
from afterword.facts.assertions import OWNER, Kind
from afterword.facts.local_time import in_zone, read_zone
from afterword.facts.transcripts import is_about_somebody
from afterword.pipeline.proposals import apply_proposal
from afterword.pipeline.reversible_runs import redo_run, undo_run
from afterword.store import entries, ledger, reviews, runs, scope_rows
from afterword.store.entered_statements import Entry
from afterword.store.forgetting.pauses import Pause, end_pause, pause_scope
from afterword.store.proposals import RunEffect
from afterword.store.reviews import Decision, Wording
from afterword.store.runs import Run
from afterword.store.scope_rows import Policy

NOTE = "note"
"""The subject of texts that are about nobody."""
HELD_RUN, ERASE_REQUEST = "run:", "erase:"
"""How the ids of a held run and of a request to erase begin, where a person decides."""


class ScopeChanges(ScopeFindings):
    """What can be changed in one scope. Use it through `ScopeMemory`."""

    async def remember(
        self,
        statement: str,
        *,
        kind: Kind | str = Kind.ENTITY,
        subject: str = OWNER,
        attribute: str = "note",
        value: str | None = None,
        valid_from: Instant | None = None,
        valid_to: Instant | None = None,
        tags: Several = (),
    ) -> RunEffect:
        """Store a sentence that the application states, and return its run with the changes.

        `subject` is whom it is about, "user" for the owner of the memory. `tags` are words to find it by. The same
        sentence again supports the fact that is there, and adds its tags. Secrets in it are masked. A sentence that
        reads like an instruction to an assistant waits for `review`: the run's status is "held". Raises
        `ArgumentInvalid`, also if the sentence asks to be off the record or says nothing but a secret, and `Overtaken`
        if other writers were always faster.
        """
        statement = " ".join(statement.split())
        if not statement:
            raise ArgumentInvalid("the statement is empty; say in one sentence what is to be remembered")
        (known_kind,) = choices(Kind, kind, "kind")
        said_at = in_zone(self._now(), await self._zone())
        entry = Entry(
            statement,
            known_kind,
            subject,
            attribute,
            value,
            None if valid_from is None else instant(valid_from, day_time=time.min, zone=said_at.tzinfo or UTC),
            None if valid_to is None else instant(valid_to, day_time=time(23, 59, 59), zone=said_at.tzinfo or UTC),
            tag_names(tags),
        )
        return await self._changed(entries.add_entry, entry, at=said_at)

    async def remember_text(self, text: str, *, tags: Several = ()) -> RunEffect:
        """Store a text that the application states, and return its run with the changes.

        A sentence about somebody counts as `remember` says. Any other text, such as a finding or a result, is kept as
        it is, under a subject of its own: recall finds it, and nothing that a person says ever replaces it or is
        replaced by it. Raises as `remember` does.
        """
        subject = OWNER if is_about_somebody(text, self.scope.id) else NOTE
        return await self.remember(text, subject=subject, tags=tags)

    async def edit(
        self,
        fact_id: str,
        *,
        statement: str | None = None,
        value: str | None = None,
        about: str | None = None,
        changed: bool = False,
    ) -> RunEffect:
        """Correct a fact on behalf of a person. A person's word outranks what was extracted.

        Give at least one of `statement` (the sentence), `value` (the value alone) and `about` (whom it is about). With
        `changed` the fact held until now; by default it was wrong from the start. The days on which it begins and ends
        stay, unless the new words name other days. Raises `NotFound` and `ArgumentInvalid`.
        """
        if statement is None and about is None and value is None:
            raise ArgumentInvalid("say what the fact should be: statement, value or about")
        return await self._changed(reviews.edit_fact, fact_id, Wording(statement, value, about), is_change=changed)

    async def confirm(self, fact_id: str) -> RunEffect:
        """Mark a fact as confirmed by a person: it outranks what was extracted. Raises `NotFound`."""
        return await self._changed(reviews.confirm_fact, fact_id)

    async def flag(self, fact_id: str, *, flagged: bool = True) -> RunEffect:
        """Say whether an agent must never miss a fact: flagged facts come first where not all fit. Raises `NotFound`.

        Facts about health, allergies and safety and standing instructions are flagged without this.
        """
        return await self._changed(reviews.flag_fact, fact_id, is_flagged=flagged)

    async def withdraw(self, fact_id: str) -> RunEffect:
        """Withdraw a fact on behalf of a person: it no longer holds from now on.

        Nothing is erased. Raises `NotFound`.
        """
        return await self._changed(reviews.withdraw_fact, fact_id)

    async def clear(self) -> RunEffect | None:
        """Withdraw everything that holds, as one run; None if nothing holds. Nothing is erased: see `forget`."""
        return await entries.withdraw_everything(await self._store(), self.scope, at=self._now())

    async def decide(self, item_id: str, decision: Decision | str) -> RunEffect:
        """Carry out a person's decision on an item of `review`, and return the run that it made or decided.

        Of a contest, "approve" lets the later statement take the place of the earlier one, "reject" withdraws the later
        one, and "keep-both" lets both stand. A held run ("run:12") is approved or rejected. A request to erase
        ("erase:ID") can be rejected: what it hides counts again. `item_id` may also be the place of a contest in the
        list, from 1. Raises `NotFound`, `ArgumentInvalid`, and `StateConflict` if a person has decided otherwise.
        """
        (chosen,) = choices(Decision, decision, "decision")
        if item_id.startswith(HELD_RUN):
            return await self._decide_run(item_id.removeprefix(HELD_RUN), chosen)
        if item_id.startswith(ERASE_REQUEST):
            if chosen is not Decision.REJECT:
                raise ArgumentInvalid("a request to erase can only be rejected; `afterword forget --asked` erases")
            return await self._changed(reviews.reject_erase_request, item_id.removeprefix(ERASE_REQUEST))
        contests = (await self.review()).contests
        by_id = {str(number): contest for number, contest in enumerate(contests, 1)}
        contest = (by_id | {contest.id: contest for contest in contests}).get(item_id)
        if contest is None:
            raise NotFound(f"nothing in the review of {self.scope} is called {item_id!r}; see `afterword review`")
        return await self._changed(reviews.decide_contest, contest.earlier.id, contest.later.id, chosen)

    async def set_policy(self, policy: Policy | str) -> Policy:
        """Set which runs wait for a person from now on: "auto" (none), "hold-retirements" or "hold-all"."""
        (chosen,) = choices(Policy, policy, "policy")
        await self._write(lambda transaction: scope_rows.set_policy(transaction, self.scope, chosen))
        return chosen

    async def set_zone(self, zone: str | None) -> str:
        """Set the time zone (IANA name) of sources without offsets for what is read from now on, and return it.

        None stands for the zone of the profile. `reprocess` reads a session that is known already in the new zone.
        Raises `ArgumentInvalid`.
        """
        try:
            read_zone(zone or "UTC")
        except ValueError as error:
            raise ArgumentInvalid(str(error)) from None
        await self._write(lambda transaction: scope_rows.set_zone(transaction, self.scope, zone))
        return await self.zone()

    async def pause(self) -> Pause:
        """Store no session of the scope from now on, and return the pause. Nothing is forgotten.

        Sessions that are recorded or processed meanwhile are counted and left out, also when they are saved again after
        the pause; agents cannot remember anything. Sessions that were recorded before wait. What the application
        enters with `remember` is still kept.
        """
        at = self._now()
        return await self._write(lambda transaction: pause_scope(transaction, self.scope, at))

    async def resume_keeping(self) -> Pause | None:
        """Store sessions again, and return the pause that has ended, with the number of sessions that were not stored.

        None if the scope was not paused.
        """
        return await self._write(lambda transaction: end_pause(transaction, self.scope))

    async def apply(self, run_id: int) -> RunEffect:
        """Apply a proposed or held run, and return the run that was applied.

        If the scope has changed since, the same assertions are judged against what is new, and the run that is applied
        is a new one. Raises `NotFound`, `ProposalOutdated` if its session was read further since, or if a proposed run
        would now do something else than it showed, `ScopeBusy`, and an `ExtractionError` if the judge gave no answer.
        """
        await self._own_run(run_id)
        tracker = self._resources.tracker()
        async with self._resources.extractor_and_judge() as workers:
            applied = await apply_proposal(
                await self._store(), run_id, judge=workers.judge, budget=tracker, clock=self._resources.now
            )
        await self._resources.refresh_vectors([self.scope], tracker)
        return applied

    async def undo(self, run_id: int) -> RunEffect:
        """Undo an applied run, as if it had never been applied, and return what changed.

        Raises `NotFound` if the scope has no such applied run.
        """
        return await self._switched(run_id, undo_run)

    async def redo(self, run_id: int) -> RunEffect:
        """Redo an undone run, as if it had never been undone, and return what changed.

        A later run over the same session still takes precedence. Raises `NotFound` if the scope has no such undone run,
        and `StateConflict` if a decision of a person meanwhile must be undone first.
        """
        return await self._switched(run_id, redo_run)

    async def _switched(self, run_id: int, switch: Callable[..., Awaitable[RunEffect]]) -> RunEffect:
        await self._own_run(run_id)
        async with self._resources.extractor_and_judge() as workers:
            effect = await switch(await self._store(), run_id, judge=workers.judge, clock=self._resources.now)
        await self._resources.refresh_vectors([self.scope])
        return effect

    async def _decide_run(self, number: str, decision: Decision) -> RunEffect:
        if not number.isdecimal():
            raise ArgumentInvalid(f"{number!r} is no number of a run; see `afterword review`")
        if decision is Decision.KEEP_BOTH:
            raise ArgumentInvalid("a held run is approved or rejected")
        run_id = int(number)
        if decision is Decision.APPROVE:
            return await self.apply(run_id)
        await self._write(lambda transaction: ledger.reject_run(transaction, self.scope, run_id))
        return RunEffect(await self._own_run(run_id))

    async def _own_run(self, run_id: int) -> Run:
        # The answer is the same whether there is no such run or it belongs to another scope.
        with suppress(NotFound):
            run = await self._read(lambda transaction: runs.read_run(transaction, run_id))
            if run.scope == self.scope:
                return run
        raise NotFound(f"no run {run_id} in {self.scope}; see `afterword runs`")

    async def _changed(self, change: Callable[..., Awaitable[RunEffect]], *arguments: Any, **options: Any) -> RunEffect:
        """Make a change of the scope and the vectors that it lacks then, and return the change."""
        effect = await change(await self._store(), self.scope, *arguments, **{"at": self._now(), **options})
        await self._resources.refresh_vectors([self.scope])
        return effect
