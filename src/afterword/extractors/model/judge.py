"""The judge that asks a language model. One request holds all pairs, by number and without ids.

In most pairs, the statements do not affect each other (`beside`). The answer only lists the numbers of these pairs,
which saves most of its tokens.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter

from pydantic import BaseModel, Field

from afterword.extractors.errors import AnswerCut, AnswerInvalid, ExtractionError
from afterword.extractors.extractor import Usage
from afterword.extractors.judge import OtherNames, Pair
from afterword.extractors.model.client import Message, ModelClient
from afterword.extractors.model.prompts import load_prompt
from afterword.extractors.model.prompts.rendering import WEEKDAYS, quoted_line
from afterword.facts.assertions import OWNER, Assertion, Cue, Extent, Relation, SpeechAct, Verdict
from afterword.facts.words import folded

PAIRS_A_CALL = 40
"""The most pairs in one request."""
PAIRS_A_STATEMENT = 8
"""How many earlier statements about another subject or attribute one statement is compared with at most.

The number was chosen by measuring recorded verdicts.
"""
MOST_NAMES, LONGEST_NAME = 3, 60
"""How many other names of a subject are shown at most, and how many characters of each."""

JUDGE_PROMPT = "judge-4"
OPENING, CLOSING = "<statements>", "</statements>"
LONGEST_QUOTE = 120
TAKING_BACK = frozenset({Relation.RETRACTS, Relation.BESIDE})
"""The relations that are allowed for a pair whose later statement takes something back."""

_ACTS = {SpeechAct.RETRACT: "takes back", SpeechAct.ERASE: "asks to forget"}
_CUES = {Cue.CHANGE: "said as a change", Cue.CORRECTION: "said as a correction"}


# Names, docstrings and descriptions of the next two classes are sent to the model: they belong to the prompt's version.
class Finding(BaseModel):
    """What the model says of one pair that is not beside."""

    pair: int = Field(description="The number of the pair.")
    reason: str = Field(description="Why, in at most twelve words.")
    relation: Relation = Field(description="How the later-said statement relates to the earlier-said one.")
    same_subject: bool = Field(description="Whether both are about one and the same person, place, project or thing.")
    extent: Extent | None = Field(None, description="How much of the earlier a change with days of its own takes.")
    remainder: str | None = Field(None, description="What stays of an earlier sentence of which one part is out.")


class Findings(BaseModel):
    """What the model answers: each pair in one of three lists."""

    findings: list[Finding]
    beside: list[int] = Field([], description="The other pairs that are about one subject, by number.")
    beside_apart: list[int] = Field([], description="The other pairs that are about two subjects, by number.")

    def all_findings(self) -> list[Finding]:
        """Return a finding for each pair, in the order of their numbers."""
        beside = [
            Finding(pair=number, reason="", relation=Relation.BESIDE, same_subject=same_subject)
            for numbers, same_subject in ((self.beside, True), (self.beside_apart, False))
            for number in numbers
        ]
        return sorted([*self.findings, *beside], key=lambda finding: finding.pair)


@dataclass(slots=True)
class _Inquiry:
    """What the requests about one list of pairs share: the other names of subjects, and the usage so far."""

    other_names: OtherNames
    usage: Usage = field(default_factory=Usage)


class ModelJudge:
    """Relates pairs of statements by asking a language model.

    The client may be shared and is not closed here. `version` names the model and the prompt, for example
    `model:gpt-4o-mini:judge-4`.
    """

    pairs_a_call: int | None = PAIRS_A_CALL
    pairs_a_statement: int | None = PAIRS_A_STATEMENT

    def __init__(self, client: ModelClient) -> None:
        self._client = client
        self._prompt = load_prompt(JUDGE_PROMPT)
        self.version: str = f"model:{client.settings.model}:{JUDGE_PROMPT}"

    async def judge(self, pairs: Sequence[Pair], other_names: OtherNames | None = None) -> tuple[list[Verdict], Usage]:
        """Return a verdict for every pair, even for unrelated ones, and the usage. Without pairs no request is sent.

        The model is shown some of the `other_names` of a subject. If the request or its answer is too long, the pairs
        are sent in halves.

        Raises ValueError for more than `PAIRS_A_CALL` pairs, `AnswerInvalid` if two answers in a row leave out or
        invent a pair or give a relation that is not allowed, and any other `ExtractionError` of the client. The `usage`
        of the error is the sum of all requests.
        """
        if len(pairs) > PAIRS_A_CALL:
            raise ValueError(f"{len(pairs)} pairs; at most {PAIRS_A_CALL} fit one question")
        if not pairs:
            return [], Usage()
        inquiry = _Inquiry(other_names or {})
        try:
            return await self._verdicts_in_halves(list(_numbered_pairs(pairs).values()), inquiry), inquiry.usage
        except ExtractionError as error:
            error.usage = inquiry.usage
            raise

    async def _verdicts_in_halves(self, pairs: Sequence[Pair], inquiry: _Inquiry) -> list[Verdict]:
        try:
            return await self._ask_once_or_twice(_numbered_pairs(pairs), inquiry)
        except AnswerCut:
            if len(pairs) == 1:
                raise
        middle = len(pairs) // 2
        first = await self._verdicts_in_halves(pairs[:middle], inquiry)
        return first + await self._verdicts_in_halves(pairs[middle:], inquiry)

    async def _ask_once_or_twice(self, numbered: Mapping[int, Pair], inquiry: _Inquiry) -> list[Verdict]:
        messages: list[Message] = [
            {"role": "system", "content": self._prompt},
            {"role": "user", "content": pairs_block(numbered, inquiry.other_names)},
        ]
        answer = await self._ask(messages, inquiry)
        if faults := _answer_faults(answer, numbered):
            answer = await self._ask([*messages, *_messages_about_faults(answer, faults)], inquiry)
            if faults := _answer_faults(answer, numbered):
                raise AnswerInvalid(
                    f"{self._client.settings.place}: the judge's second answer is wrong, too ({'; '.join(faults)}); "
                    "the session is tried again later, or try a more capable model"
                )
        return [self._verdict(finding, numbered[finding.pair]) for finding in answer.all_findings()]

    async def _ask(self, messages: Sequence[Message], inquiry: _Inquiry) -> Findings:
        try:
            answer, usage = await self._client.ask(messages, Findings, purpose="judging")
        except ExtractionError as error:
            inquiry.usage += error.usage
            raise
        inquiry.usage += usage
        return answer

    def _verdict(self, finding: Finding, pair: Pair) -> Verdict:
        """Return the model's finding as a verdict, without parts that do not fit its relation."""
        earlier, later = pair
        label = folded(later.subject)
        is_one_label = folded(earlier.subject) == label
        is_beside, is_change = finding.relation is Relation.BESIDE, finding.relation is Relation.CHANGES
        remainder = " ".join((finding.remainder or "").split())
        leaves_room = finding.relation in (Relation.CHANGES, Relation.CORRECTS)
        return Verdict(
            earlier.id,
            later.id,
            finding.relation,
            " ".join(finding.reason.split()),
            self.version,
            joins_subjects=finding.same_subject and not is_one_label,
            parts_subjects=is_one_label and label != OWNER and not finding.same_subject and is_beside,
            extent=finding.extent if is_change else None,
            remainder=remainder if remainder and leaves_room else None,
        )


def _messages_about_faults(answer: Findings, faults: Sequence[str]) -> list[Message]:
    """Return the messages that show the model its answer and the faults of it."""
    fault_lines = "\n".join(f"- {fault}" for fault in faults)
    question = f"Some numbers are wrong:\n{fault_lines}\nAnswer again, with every pair exactly once."
    return [
        {"role": "assistant", "content": answer.model_dump_json(exclude_unset=True)},
        {"role": "user", "content": question},
    ]


def pairs_block(numbered: Mapping[int, Pair], other_names: OtherNames) -> str:
    """Return the text that shows pairs to the model: the statements in the order of saying, then the pairs by number.

    The text has no ids, scopes or sessions, so that the same pairs always give the same text. The other names of a
    subject stand beside its first statement.
    """
    sides = {side.id: side for pair in numbered.values() for side in pair}
    statements = sorted(sides.values(), key=attrgetter("order"))
    named: set[str] = set()
    lines: list[str] = []
    for place, statement in enumerate(statements, 1):
        label = folded(statement.subject)
        names = _shown_names(statement, () if label in named else other_names.get(label, ()))
        lines.append(f"S{place} {_statement_line(statement, names)}")
        named.add(label)
    places = {statement.id: place for place, statement in enumerate(statements, 1)}
    for later_id, pairs in groupby(numbered.items(), key=lambda entry: entry[1][1].id):
        listed = ", ".join(f"{number}. S{places[earlier.id]}" for number, (earlier, _) in pairs)
        lines.append(f"LATER S{places[later_id]}; earlier: {listed}")
    return "\n".join([OPENING, *lines, CLOSING])


def _shown_names(assertion: Assertion, other_names: Sequence[str]) -> list[str]:
    """Return the names that are shown beside a statement: its former name, and other names of its subject."""
    former_name = assertion.former_name
    former = [former_name] if former_name else []
    others = [name[:LONGEST_NAME] for name in other_names if not former_name or folded(name) != folded(former_name)]
    return former + others[: MOST_NAMES - len(former)]


def _numbered_pairs(pairs: Sequence[Pair]) -> dict[int, Pair]:
    """Return the pairs numbered from 1, and grouped by their later statement."""
    by_later: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_later[pair[1].id].append(pair)
    groups = sorted(by_later.values(), key=lambda group: group[0][1].order)
    grouped = [pair for group in groups for pair in sorted(group, key=lambda pair: pair[0].order)]
    return dict(enumerate(grouped, 1))


def _statement_line(assertion: Assertion, other_names: Sequence[str]) -> str:
    marks = [
        _ACTS.get(assertion.act, ""),
        _CUES[assertion.cue] if assertion.cue else "",
        f"holds from {assertion.valid_from:%Y-%m-%d}" if assertion.valid_from else "",
        f"holds until {assertion.valid_to:%Y-%m-%d}" if assertion.valid_to else "",
        f"limited to {quoted_line(assertion.limited_to)}" if assertion.limited_to else "",
        f"also called {', '.join(map(quoted_line, other_names))}" if other_names else "",
    ]
    day = f"{WEEKDAYS[assertion.said_at.weekday()]} {assertion.said_at:%Y-%m-%d}"
    label = f"({day}, {assertion.kind.value}) {quoted_line(assertion.subject)}, {assertion.attribute}"
    quotes = [quoted_line(evidence.quote[:LONGEST_QUOTE]) for evidence in assertion.evidence if evidence.quote]
    words = f"in their words {' / '.join(quotes)}" if quotes else ""
    return "; ".join(part for part in (f"{label}: {quoted_line(assertion.statement)}", *marks, words) if part)


def _answer_faults(answer: Findings, numbered: Mapping[int, Pair]) -> list[str]:
    """Return descriptions of the faults of an answer, without any words of a user."""
    findings = answer.all_findings()
    counts = Counter(finding.pair for finding in findings)
    not_allowed = {
        finding.pair
        for finding in findings
        if finding.pair in numbered
        and numbered[finding.pair][1].act is not SpeechAct.STATE
        and finding.relation not in TAKING_BACK
    }
    pairs_by_fault = {
        "not answered": set(numbered) - set(counts),
        "no such pair": set(counts) - set(numbered),
        "answered more than once": {number for number, count in counts.items() if count > 1},
        "can only be retracts or beside": not_allowed,
    }
    return [f"{fault}: {', '.join(map(str, sorted(pairs)))}" for fault, pairs in pairs_by_fault.items() if pairs]
