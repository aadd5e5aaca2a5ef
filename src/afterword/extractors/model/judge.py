"""The judge that asks a language model: all pairs in one question, shown without ids, each answered exactly once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from afterword.extractors.errors import AnswerCut, AnswerInvalid, ExtractionError
from afterword.extractors.extractor import Usage
from afterword.extractors.judge import Pair
from afterword.extractors.model.answer_shape import Shape
from afterword.extractors.model.client import Message, ModelClient
from afterword.extractors.model.prompts import load_prompt
from afterword.extractors.model.prompts.rendering import WEEKDAYS, as_data
from afterword.facts.assertions import OWNER, Assertion, Cue, Relation, SpeechAct, Verdict
from afterword.facts.words import folded

PAIRS_A_CALL = 40
"""How many pairs one question may hold."""

JUDGE = "judge-2"
OPENING, CLOSING = "<statements>", "</statements>"
LONGEST_QUOTE = 120
TAKING_BACK = frozenset({Relation.RETRACTS, Relation.BESIDE})
"""What may become of a pair whose later side takes something back."""

_ACTS = {SpeechAct.RETRACT: "takes back", SpeechAct.ERASE: "asks to forget"}
_CUES = {Cue.CHANGE: "said as a change", Cue.CORRECTION: "said as a correction"}


class Finding(BaseModel):
    """What the model says of one pair."""

    model_config = ConfigDict(extra="ignore")

    pair: int = Field(description="The number of the pair.")
    reason: str = Field(description="Why, in at most twelve words.")
    relation: Relation = Field(description="How the later-said statement relates to the earlier-said one.")
    same_subject: bool = Field(description="Whether both are about one and the same person, place or thing.")


class Findings(Shape):
    """What the model answers: one finding for each pair."""

    model_config = ConfigDict(extra="ignore")

    findings: list[Finding]


@dataclass(slots=True)
class _Spent:
    """What the questions about one list of pairs have cost so far."""

    usage: Usage = field(default_factory=Usage)


class ModelJudge:
    """Relates pairs as a language model reads them.

    The client is shared with whoever else asks the same endpoint; whoever made it closes it.
    """

    pairs_a_call: int | None = PAIRS_A_CALL

    def __init__(self, client: ModelClient, *, prompt: str = JUDGE) -> None:
        self._client = client
        self._prompt = load_prompt(prompt)

    @property
    def version(self) -> str:
        """Model and prompt, for example `model:gpt-4o-mini:judge-1`."""
        return f"model:{self._client.settings.model}:{self._prompt.id}"

    async def judge(self, pairs: Sequence[Pair]) -> tuple[list[Verdict], Usage]:
        """Return a verdict for every pair, those that stand beside each other included; no pairs, no question.

        Where the question or its answer is too long, it is asked in halves. Raises ValueError for more than
        `PAIRS_A_CALL` pairs, `AnswerInvalid` where a pair was left out, made up or answered in a way that it does not
        allow, twice in a row, and any other `ExtractionError` of the client; its `usage` is all that was spent.
        """
        if len(pairs) > PAIRS_A_CALL:
            raise ValueError(f"{len(pairs)} pairs; at most {PAIRS_A_CALL} fit one question")
        if not pairs:
            return [], Usage()
        spent = _Spent()
        try:
            return await self._judged(list(_numbered(pairs).values()), spent), spent.usage
        except ExtractionError as error:
            error.usage = spent.usage
            raise

    async def _judged(self, pairs: Sequence[Pair], spent: _Spent) -> list[Verdict]:
        try:
            return await self._related(_numbered(pairs), spent)
        except AnswerCut:
            if len(pairs) == 1:
                raise
        middle = len(pairs) // 2
        return [one for half in (pairs[:middle], pairs[middle:]) for one in await self._judged(half, spent)]

    async def _related(self, numbered: Mapping[int, Pair], spent: _Spent) -> list[Verdict]:
        messages: list[Message] = [
            {"role": "system", "content": self._prompt.text},
            {"role": "user", "content": shown(numbered)},
        ]
        answer = await self._ask(messages, spent)
        if faults := _faults(answer, numbered):
            messages += _objection(answer, faults)
            answer = await self._ask(messages, spent)
            if faults := _faults(answer, numbered):
                raise AnswerInvalid(
                    f"{self._client.settings.place}: the judge's answer stayed wrong ({'; '.join(faults)}); "
                    "the session is tried again later, or try a more capable model"
                )
        return self._verdicts(answer, numbered)

    async def _ask(self, messages: Sequence[Message], spent: _Spent) -> Findings:
        try:
            answer, usage = await self._client.ask(messages, Findings, purpose="judging")
        except ExtractionError as error:
            spent.usage += error.usage
            raise
        spent.usage += usage
        return answer

    def _verdicts(self, answer: Findings, numbered: Mapping[int, Pair]) -> list[Verdict]:
        verdicts = []
        for finding in sorted(answer.findings, key=lambda one: one.pair):
            earlier, later = numbered[finding.pair]
            label = folded(later.subject)
            is_one_label = folded(earlier.subject) == label
            joins = finding.same_subject and not is_one_label
            parts = is_one_label and label != OWNER and not finding.same_subject and finding.relation is Relation.BESIDE
            reason = " ".join(finding.reason.split())
            verdicts.append(Verdict(earlier.id, later.id, finding.relation, reason, self.version, joins, parts))
        return verdicts


def shown(numbered: Mapping[int, Pair]) -> str:
    """Return the pairs as a delimited list: each later-said statement once, under it the earlier-said ones by number.

    Without ids, scopes or sessions: the same pairs always give the same text. The words of an earlier statement are
    quoted where it first stands.
    """
    lines = [OPENING]
    later_id = None
    quoted: set[str] = set()
    for number, (earlier, later) in numbered.items():
        if later.id != later_id:
            later_id = later.id
            lines.append(f"\nLATER {_side(later, with_quotes=True)}")
        lines.append(f"  {number}. earlier {_side(earlier, with_quotes=earlier.id not in quoted)}")
        quoted.add(earlier.id)
    return "\n".join([*lines, CLOSING])


def _numbered(pairs: Sequence[Pair]) -> dict[int, Pair]:
    """Return the pairs numbered from 1, those with one later side together."""
    by_later: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_later[pair[1].id].append(pair)
    groups = sorted(by_later.values(), key=lambda group: group[0][1].order)
    grouped = [pair for group in groups for pair in sorted(group, key=lambda pair: pair[0].order)]
    return dict(enumerate(grouped, 1))


def _side(one: Assertion, *, with_quotes: bool) -> str:
    marks = [
        _ACTS.get(one.act, ""),
        _CUES[one.cue] if one.cue else "",
        f"holds from {one.valid_from:%Y-%m-%d}" if one.valid_from else "",
        f"holds until {one.valid_to:%Y-%m-%d}" if one.valid_to else "",
        f"limited to {as_data(one.limited_to)}" if one.limited_to else "",
    ]
    told = [as_data(item.quote[:LONGEST_QUOTE]) for item in one.evidence if item.quote] if with_quotes else []
    head = f"({_day(one.said_at)}, {one.kind.value}) {as_data(one.subject)}, {one.attribute}: {as_data(one.statement)}"
    words = f"in their words {' / '.join(told)}" if told else ""
    return "; ".join(part for part in (head, *marks, words) if part)


def _day(at: datetime) -> str:
    return f"{WEEKDAYS[at.weekday()]} {at:%Y-%m-%d}"


def _faults(answer: Findings, numbered: Mapping[int, Pair]) -> list[str]:
    """Return what is wrong with an answer as a whole, in words that hold numbers only."""
    counts = Counter(finding.pair for finding in answer.findings)
    unfitting = {
        finding.pair
        for finding in answer.findings
        if finding.pair in numbered
        and numbered[finding.pair][1].act is not SpeechAct.STATE
        and finding.relation not in TAKING_BACK
    }
    found = {
        "not answered": set(numbered) - set(counts),
        "no such pair": set(counts) - set(numbered),
        "answered more than once": {number for number, count in counts.items() if count > 1},
        "can only be retracts or beside": unfitting,
    }
    return [f"{what}: {', '.join(map(str, sorted(numbers)))}" for what, numbers in found.items() if numbers]


def _objection(answer: Findings, faults: Sequence[str]) -> list[Message]:
    told = "\n".join(f"- {fault}" for fault in faults)
    return [
        {"role": "assistant", "content": answer.model_dump_json()},
        {"role": "user", "content": f"Some numbers are wrong:\n{told}\nAnswer again, with every pair exactly once."},
    ]
