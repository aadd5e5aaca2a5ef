"""The methods of `ScopeMemory` that change a scope: facts, runs, decisions, the policy, the time zone, pauses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, time
from typing import Any

from afterword.client.arguments import Instant, NameOrNames, checked_new_tags, chosen_members, instant
from afterword.client.findings.scope_findings import ScopeFindings
from afterword.errors import ArgumentInvalid, NotFound
from afterword.facts.assertions import OWNER, Kind
from afterword.facts.local_time import at_speaker_offset, read_zone
from afterword.facts.transcripts import refers_to_person
from afterword.pipeline.proposals import apply_proposal
from afterword.pipeline.reversible_runs import redo_run, undo_run
from afterword.store import entries, ledger, reviews, runs, scope_rows
from afterword.store.entered_statements import Entry, FactEdit
from afterword.store.forgetting.pauses import Pause, end_pause, pause_scope
from afterword.store.proposals import RunEffect
from afterword.store.reviews import Decision
from afterword.store.runs import Run
from afterword.store.scope_rows import ApprovalPolicy

NOTE = "note"
"""The subject of texts that are not about a person."""
HELD_RUN, ERASE_REQUEST = "run:", "erase:"
"""The prefixes of the ids that `decide` takes for a held run and for a request to erase."""


class ScopeChanges(ScopeFindings):
    """Changes one scope. Use it through `ScopeMemory`."""

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
        tags: NameOrNames = (),
    ) -> RunEffect:
        """Store a sentence on behalf of the application, and return the run with the facts that it changed.

        `subject` is the person or thing that the sentence is about, "user" for the owner of the memory. Facts can be
        listed and searched by `tags`. Storing the same sentence again adds support and tags to the existing fact.
        Secrets are masked. A sentence that reads like an instruction to an assistant waits in `review`; the status of
        the run is then "held". Raises `ArgumentInvalid`, also if the sentence is empty, asks to be off the record or
        contains only a secret, or if `valid_to` lies before `valid_from`. Raises `Overtaken` if all attempts failed
        because of other writers.
        """
        (known_kind,) = chosen_members(Kind, kind, "kind")
        said_at = at_speaker_offset(self._resources.now(), await self._zone())
        entry = Entry(
            statement,
            known_kind,
            subject,
            attribute,
            value,
            None if valid_from is None else instant(valid_from, day_time=time.min, zone=said_at.tzinfo or UTC),
            None if valid_to is None else instant(valid_to, day_time=time(23, 59, 59), zone=said_at.tzinfo or UTC),
            checked_new_tags(tags),
        )
        return await self._make_change(entries.add_entry, entry, at=said_at)

    async def remember_text(self, text: str, *, tags: NameOrNames = ()) -> RunEffect:
        """Store a text on behalf of the application, and return the run with the facts that it changed.

        A sentence about a person is stored as `remember` does it. Any other text, for example the result of a task, is
        stored under the subject "note". It can be found by `search`, but it never replaces a person's statement and is
        never replaced by one. Raises what `remember` raises.
        """
        subject = OWNER if refers_to_person(text, self.scope.id) else NOTE
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
        """Correct a fact on behalf of a person, and return the run. A correction outranks extracted statements.

        Give at least one of `statement` (the new sentence), `value` (the new value alone) and `about` (the person or
        thing that the fact is about). Without a `statement`, the value and the name are replaced in the sentence. By
        default the old fact was never true. With `changed`, it was true until now, and what has replaced it is replaced
        too. The first and last day of the fact stay, unless the new words name other days. New words that read like an
        instruction to an assistant wait in `review`. Raises `NotFound` and `ArgumentInvalid`, also if the fact says the
        same already.
        """
        return await self._make_change(reviews.edit_fact, fact_id, FactEdit(statement, value, about), is_change=changed)

    async def confirm(self, fact_id: str) -> RunEffect:
        """Mark a fact as confirmed by a person, and return the run. Raises `NotFound`.

        A confirmed fact outranks extracted statements.
        """
        return await self._make_change(reviews.confirm_fact, fact_id)

    async def flag(self, fact_id: str, *, flagged: bool = True) -> RunEffect:
        """Set or remove the flag of a fact, and return the run. Raises `NotFound`.

        Agents are told flagged facts first if not all facts fit. Facts about health, allergies and safety and standing
        instructions are flagged automatically. No fact begins or ends because of a flag.
        """
        return await self._make_change(reviews.flag_fact, fact_id, is_flagged=flagged)

    async def withdraw(self, fact_id: str) -> RunEffect:
        """Withdraw a fact on behalf of a person, and return the run. The fact does not hold from now on.

        Nothing is erased. Raises `NotFound`, and `StateConflict` if the fact does not hold any more; the message then
        names the fact that took its place.
        """
        return await self._make_change(reviews.withdraw_fact, fact_id)

    async def clear(self) -> RunEffect | None:
        """Withdraw all facts that hold. Return the run, None if no fact holds. Nothing is erased; `forget` erases."""
        return await entries.withdraw_everything(
            await self._resources.store(), self.scope, at=self._resources.now.change_time()
        )

    async def decide(self, item_id: str | int, decision: Decision | str) -> RunEffect:
        """Carry out a person's decision on an item of `review`. Return the run of the decision.

        For a contest (two statements that contradict each other), "approve" replaces the earlier statement by the later
        one, "reject" withdraws the later one, and "keep-both" keeps both. `item_id` is the id of the contest, or its
        number in the list, counted from 1. A held run ("run:12") can be approved or rejected. A request to erase
        ("erase:ID") can only be rejected; what it has hidden is then visible again. Raises `NotFound`,
        `ArgumentInvalid`, and `StateConflict` if a person has already decided on the run, or otherwise.
        """
        (chosen,), item_id = chosen_members(Decision, decision, "decision"), str(item_id)
        if item_id.startswith(HELD_RUN):
            return await self._decide_run(item_id.removeprefix(HELD_RUN), chosen)
        if item_id.startswith(ERASE_REQUEST):
            if chosen is not Decision.REJECT:
                raise ArgumentInvalid("a request to erase can only be rejected; `afterword forget --asked` erases")
            return await self._make_change(reviews.reject_erase_request, item_id.removeprefix(ERASE_REQUEST))
        contests = (await self.review()).contests
        by_id = {str(number): contest for number, contest in enumerate(contests, 1)}
        contest = (by_id | {contest.id: contest for contest in contests}).get(item_id)
        if contest is None:
            raise NotFound(f"no item {item_id!r} in the review of {self.scope}; see `afterword review`")
        return await self._make_change(reviews.decide_contest, contest.earlier.id, contest.later.id, chosen)

    async def set_policy(self, policy: ApprovalPolicy | str) -> ApprovalPolicy:
        """Set which runs wait for a person's approval from now on, and return the new policy.

        `policy` is "auto" (no run waits), "hold-retirements" (runs that end facts wait) or "hold-all".
        """
        (chosen,) = chosen_members(ApprovalPolicy, policy, "policy")
        await self._resources.write(lambda transaction: scope_rows.set_approval_policy(transaction, self.scope, chosen))
        return chosen

    async def set_zone(self, zone: str | None) -> str:
        """Set the time zone (IANA name) for saved times without an offset, and return it.

        It applies to sessions that are read from now on, including those that `reprocess` reads again. None stands for
        the zone of the profile. Raises `ArgumentInvalid`.
        """
        try:
            read_zone("UTC" if zone is None else zone)
        except ValueError as error:
            raise ArgumentInvalid(str(error)) from None
        await self._resources.write(lambda transaction: scope_rows.set_zone(transaction, self.scope, zone))
        return await self.zone()

    async def pause(self) -> Pause:
        """Store no session of the scope from now on, and return the pause. Nothing is forgotten.

        Sessions that are recorded or processed during the pause are only counted. Their turns stay left out even if
        they are saved again after the pause. Files are an exception: a file that is processed again after the pause is
        stored. Agents cannot remember anything. Sessions that were recorded before wait until the pause ends. What the
        application enters with `remember` is still stored.
        """
        at = self._resources.now()
        return await self._resources.write(lambda transaction: pause_scope(transaction, self.scope, at))

    async def resume_keeping(self) -> Pause | None:
        """End the pause of the scope, so that sessions are stored again.

        Returns the pause with the number of sessions that were not stored, None if the scope was not paused.
        """
        return await self._resources.write(lambda transaction: end_pause(transaction, self.scope))

    async def apply(self, run_id: int) -> RunEffect:
        """Apply a proposed or held run, and return the run that was applied.

        If the scope has changed since the run was made, its statements are compared with what is new, and a new run is
        applied in its place. Raises `NotFound`, `StateConflict` if the run has been applied or rejected already,
        `ScopeBusy`, and an `ExtractionError` if the judge gave no answer. Raises `ProposalOutdated` if newer turns of
        its session were read meanwhile, or if a proposed run would now have other effects than those that were shown.
        """
        await self._own_run(run_id)
        tracker = self._resources.new_tracker()
        async with self._resources.extractor_and_judge() as configured:
            applied = await apply_proposal(
                await self._resources.store(), run_id, judge=configured.judge, budget=tracker, clock=self._resources.now
            )
        await self._resources.refresh_vectors([self.scope], tracker)
        return applied

    async def undo(self, run_id: int) -> RunEffect:
        """Undo an applied run, as if it had never been applied, and return the run with the facts that changed.

        Raises `NotFound` if the scope has no such run, and `StateConflict` if the run is not applied.
        """
        return await self._undo_or_redo(run_id, undo_run)

    async def redo(self, run_id: int) -> RunEffect:
        """Apply an undone run again, as if it had never been undone, and return the run with the facts that changed.

        A later run over the same session still takes precedence. Raises `NotFound` if the scope has no such run, and
        `StateConflict` if the run is not undone, or if a person has made a decision since that must be undone first.
        """
        return await self._undo_or_redo(run_id, redo_run)

    async def _undo_or_redo(self, run_id: int, switch: Callable[..., Awaitable[RunEffect]]) -> RunEffect:
        await self._own_run(run_id)
        async with self._resources.extractor_and_judge() as configured:
            effect = await switch(
                await self._resources.store(), run_id, judge=configured.judge, clock=self._resources.now
            )
        # Undoing a merge gives facts back to another scope.
        has_moved = effect.run.purpose in (runs.MERGE, runs.RENAME)
        await self._resources.refresh_vectors(None if has_moved else [self.scope])
        return effect

    async def _decide_run(self, number: str, decision: Decision) -> RunEffect:
        if not number.isdecimal():
            raise ArgumentInvalid(f"{number!r} is not the number of a run; see `afterword review`")
        if decision is Decision.KEEP_BOTH:
            raise ArgumentInvalid("a held run can only be approved or rejected")
        run_id = int(number)
        if decision is Decision.APPROVE:
            return await self.apply(run_id)
        await self._resources.write(lambda transaction: ledger.reject_run(transaction, self.scope, run_id))
        return RunEffect(await self._own_run(run_id))

    async def _own_run(self, run_id: int) -> Run:
        # The error must not reveal whether the run exists in another scope.
        with suppress(NotFound):
            run = await self._resources.read(lambda transaction: runs.read_run(transaction, run_id))
            if run.scope == self.scope:
                return run
        raise NotFound(f"no run {run_id} in {self.scope}; see `afterword runs`")

    async def _make_change(
        self, change: Callable[..., Awaitable[RunEffect]], *arguments: Any, **options: Any
    ) -> RunEffect:
        """Call `change` for this scope, make the vectors that are missing then, and return the result of `change`."""
        effect = await change(
            await self._resources.store(),
            self.scope,
            *arguments,
            **{"at": self._resources.now.change_time(), **options},
        )
        await self._resources.refresh_vectors([self.scope])
        return effect
