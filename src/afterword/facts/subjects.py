"""Which subject a name means: several names of one subject, one name of two subjects, and former names. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from afterword.facts.assertions import OWNER, PERSON, Assertion, Authority, Cue, Relation, SpeechAct, Verdict
from afterword.facts.fact import SERVED_STATUSES, Fact, Status
from afterword.facts.scopes import ScopeKind
from afterword.facts.similarity import is_distinctive_stem
from afterword.facts.validity.retirement_guard import refusal_reason
from afterword.facts.words import folded, folded_words, terms, words_as_written

LabelPair = tuple[str, str]
"""The folded names of two subjects."""

LEAST_COMMON_WORDS, LEAST_COMMON_SHARE = 2, 0.2
"""How many words two sentences must have in common to be about the same thing, and which share of the shorter one."""


_NAMING_STATUSES = SERVED_STATUSES | {Status.SUPERSEDED, Status.EXPIRED}
_QUALIFIERS = (
    "Old New Upper Lower Great Little North South East West Saint St San Santa Mount Alt Alte Neu Neue".split()
)
"""Words that make a different name together with the name after them: "Old Harrow" is not "Harrow"."""
_FORMERLY = "former formerly previously früher ehemals vormals antes ancien anciennement già voorheen".split()
"""Words before a name that mark it as a former name."""
_NAME_START = r"(?<![\w@/.-])" + "".join(
    rf"(?<!\b{word} )" for word in (*(f"(?-i:{qualifier})" for qualifier in _QUALIFIERS), *_FORMERLY)
)
_NAME_END = r"(?!\w|[-./@_]\w| & | (?-i:[A-ZÀ-ÖØ-Þ]))"
"""A pattern of what may not follow a name, so that it is not replaced inside a longer one: "Max" is not "Max Weber"."""


def joined_labels(verdict: Verdict, by_id: Mapping[str, Assertion]) -> LabelPair | None:
    """Return the folded names of two subjects that a verdict joins in the whole scope, None if it joins none."""
    if not verdict.joins_subjects or verdict.relation is Relation.BESIDE:
        return None
    labels = folded(by_id[verdict.earlier_id].subject), folded(by_id[verdict.later_id].subject)
    return None if OWNER in labels else labels


def renamed_labels(said: Assertion) -> LabelPair | None:
    """Return the folded former and new name of the subject if a statement renames it, else None.

    The owner is never renamed, and a statement of an agent renames nothing.
    """
    if said.former_name is None or said.act is not SpeechAct.STATE or said.authority is Authority.AGENT:
        return None
    labels = folded(said.former_name), folded(said.subject)
    return None if OWNER in labels or labels[0] == labels[1] or not labels[0] else labels


def undoes_renaming(verdict: Verdict, by_id: Mapping[str, Assertion]) -> bool:
    """Whether a verdict takes back the whole earlier statement, and with it the new name that this gave its subject."""
    if verdict.relation not in (Relation.RETRACTS, Relation.CORRECTS) or verdict.remainder is not None:
        return False
    earlier, later = by_id[verdict.earlier_id], by_id[verdict.later_id]
    return verdict.judge == PERSON or refusal_reason(earlier, later, is_same_subject=True) is None


def share_topic(earlier: Assertion, later: Assertion) -> bool:
    """Whether two sentences have at least two words in common, and at least a fifth of the words of the shorter one."""
    first, second = ({stem for stem in terms(said.statement) if is_distinctive_stem(stem)} for said in (earlier, later))
    common = len(first & second)
    return common >= LEAST_COMMON_WORDS and common >= LEAST_COMMON_SHARE * min(len(first), len(second))


def names_new_holder(earlier: Assertion, later: Assertion) -> bool:
    """Whether the later statement names a new holder of the same office or thing ("Ben is the chair now").

    It must be said as a change and have the same attribute, and the words of one value must contain those of the other.
    """
    first, second = set(terms(earlier.value)), set(terms(later.value))
    is_one_thing = bool(first and second) and (first <= second or second <= first)
    is_change = later.cue is Cue.CHANGE and later.act is SpeechAct.STATE
    return is_change and folded(earlier.attribute) == folded(later.attribute) and is_one_thing


def _may_join(verdict: Verdict, by_id: Mapping[str, Assertion]) -> bool:
    """Whether a verdict may treat the two subjects of its pair as one.

    A verdict alone does not give the owner another name. The statement about the owner, or its quotes, must contain
    this name, or both statements must have enough words in common. If the statement about the owner is the later one, a
    name in the value of the other statement is enough. If a change fulfils a search or wish of the owner, it is enough
    that the wish contains all words of the new value. A verdict by a person needs none of this.
    """
    earlier, later = by_id[verdict.earlier_id], by_id[verdict.later_id]
    is_owner = folded(earlier.subject) == OWNER, folded(later.subject) == OWNER
    if all(is_owner) or not any(is_owner) or verdict.judge == PERSON:
        return True
    owner, other = (earlier, later) if is_owner[0] else (later, earlier)
    said = {*folded_words(owner.statement), *(word for cited in owner.evidence for word in folded_words(cited.quote))}
    if said.issuperset(folded_words(other.subject)):
        return True
    if owner is later:
        is_close = not said.isdisjoint(folded(word) for word in words_as_written(other.value) if word[0].isupper())
    else:
        is_close = verdict.relation is Relation.CHANGES and _has_all_words(owner, other.value)
    return is_close or share_topic(earlier, later)


def _has_all_words(said: Assertion, value: str) -> bool:
    stems = set(terms(value))
    return bool(stems) and stems.issubset(terms(said.statement))


def _has_name(said: Assertion, label: str) -> bool:
    return label != OWNER and _padded(label) in _padded(said.statement)


def _is_about_scope_itself(said: Assertion) -> bool:
    """Whether the subject of a statement is the team, project or agent that the scope belongs to, which is unique."""
    return said.scope.kind is not ScopeKind.USER and folded(said.subject) == folded(said.scope.id)


class SubjectNames:
    """Which labels (folded names) of a scope mean the same subject, and which single-word names fit several people.

    `spellings` maps each label to the latest spelling of the name. `joins` are pairs of labels that mean one subject,
    by a verdict or a renaming. A join of a single-word name that fits two people is ignored, because it is unclear who
    is meant.
    """

    def __init__(self, spellings: Mapping[str, str], joins: Iterable[LabelPair]) -> None:
        self.spellings = spellings
        self._parents: dict[str, str] = {}
        joins = list(joins)
        self._join(pair for pair in joins if not any(map(_is_single_word, pair)))
        self.ambiguous_names: dict[str, set[str]] = self._find_ambiguous_names()
        self._join(
            pair for pair in joins if any(map(_is_single_word, pair)) and not self.ambiguous_names.keys() & set(pair)
        )

    def canonical(self, label: str) -> str:
        """Return the label that stands for all labels of the same subject."""
        while label in self._parents:
            label = self._parents[label]
        return label

    def other_labels(self, label: str) -> list[str]:
        """Return the other labels of the same subject, sorted."""
        labels = {*self._parents, *self._parents.values()}
        canonical = self.canonical(label)
        return sorted(other for other in labels - {label} if self.canonical(other) == canonical)

    def changed_labels(self, before: SubjectNames) -> set[str]:
        """Return the labels that mean another subject than they did before."""
        if self is before:
            return set()
        labels = {*self._parents, *before._parents, *self.ambiguous_names, *before.ambiguous_names}
        return {label for label in labels if self._meaning(label) != before._meaning(label)}

    def _meaning(self, label: str) -> tuple[object, ...]:
        people = {(self.spellings[name], self.canonical(name)) for name in self.ambiguous_names.get(label, ())}
        return self.canonical(label), people

    def _join(self, joins: Iterable[LabelPair]) -> None:
        for earlier, later in joins:
            parent, child = sorted((self.canonical(earlier), self.canonical(later)))
            if parent != child:
                self._parents[child] = parent

    def _find_ambiguous_names(self) -> dict[str, set[str]]:
        """Return the single-word names that occur in the full names of several people, each with these full names."""
        full_names: dict[str, set[str]] = defaultdict(set)
        for label, spelling in self.spellings.items():
            if _is_full_name(spelling):
                for word in set(label.split()) & self.spellings.keys():
                    full_names[word].add(label)
        return {word: names for word, names in full_names.items() if len(set(map(self.canonical, names))) > 1}


class Subjects:
    """Tells which of these statements are about the same subject, and whose subject fits several people.

    A verdict that joins two subjects applies to the judged pair. If `names` has the join, it applies to all statements
    about either name.
    """

    def __init__(self, by_id: Mapping[str, Assertion], verdicts: Iterable[Verdict], names: SubjectNames | None) -> None:
        verdicts = list(verdicts)
        self._joined: dict[str, set[str]] = defaultdict(set)
        self._parted: dict[str, set[str]] = defaultdict(set)
        for verdict in verdicts:
            for id_, other_id in ((verdict.earlier_id, verdict.later_id), (verdict.later_id, verdict.earlier_id)):
                if verdict.parts_subjects and not _is_about_scope_itself(by_id[id_]):
                    self._parted[id_].add(other_id)
                if verdict.joins_subjects and _may_join(verdict, by_id):
                    self._joined[id_].add(folded(by_id[other_id].subject))
        self._names = names or _names_of(by_id, verdicts)

    def are_same(self, earlier: Assertion, later: Assertion) -> bool:
        """Whether both statements are known to be about the same subject."""
        if self.are_parted(earlier, later):
            return False
        label, other_label = folded(earlier.subject), folded(later.subject)
        is_judged = other_label in self._joined.get(earlier.id, ()) and label in self._joined.get(later.id, ())
        return is_judged or self._names.canonical(label) == self._names.canonical(other_label)

    def are_parted(self, earlier: Assertion, later: Assertion) -> bool:
        """Whether a verdict says that the two statements are about different subjects of the same name."""
        return later.id in self._parted.get(earlier.id, ())

    def concern_one_subject(self, earlier: Sequence[Assertion], later: Sequence[Assertion]) -> bool:
        """Whether two facts are about one subject, or the later one is known to concern the subject of the earlier one.

        Each fact is given by its statement and the repetitions of it. "Ada sold the bakery to Ben" is about Ada, and
        yet it ends what was said of the bakery. An earlier statement that names the later one's subject must name it in
        several words, and speak of the same thing besides. "Ben is the chair now" is about Ben, and ends that Ada is
        the chair. What ends a repetition ends the fact.
        """
        old, new = earlier[0], later[0]
        if any(self.are_same(said, new) for said in earlier):
            return True
        if self.are_parted(old, new):
            return False
        is_named = share_topic(old, new) and self._has_full_name(old, new)
        return is_named or names_new_holder(old, new) or any(_has_name(said, folded(old.subject)) for said in later)

    def _has_full_name(self, said: Assertion, of: Assertion) -> bool:
        """Whether a sentence contains a present or former name, of several words, of another statement's subject."""
        label = folded(of.subject)
        return any(" " in name and _has_name(said, name) for name in (label, *self._names.other_labels(label)))

    def possible_people(self, assertion: Assertion) -> tuple[str, ...]:
        """Return the names of all people whom a statement may be about, or nothing if its subject is clear."""
        names = self._names.ambiguous_names.get(folded(assertion.subject), set())
        joined = self._joined.get(assertion.id, set())
        if len(set(map(self._names.canonical, joined & names))) == 1:
            return ()
        if names:
            return tuple(sorted(self._names.spellings[name] for name in names))
        return (assertion.subject, assertion.subject) if self._parted.get(assertion.id) and not joined else ()


def _names_of(by_id: Mapping[str, Assertion], verdicts: Sequence[Verdict]) -> SubjectNames:
    """Return the names of the subjects of these statements, as if there were no others in the scope."""
    joins = (joined_labels(verdict, by_id) for verdict in verdicts)
    undone = {verdict.earlier_id for verdict in verdicts if undoes_renaming(verdict, by_id)}
    renames = (renamed_labels(said) for said in by_id.values() if said.id not in undone)
    in_order = sorted(by_id.values(), key=lambda assertion: assertion.order)
    spellings = {folded(assertion.subject): assertion.subject for assertion in in_order}  # the latest of each
    return SubjectNames(spellings, filter(None, (*joins, *renames)))


def _is_single_word(label: str) -> bool:
    return " " not in label


def _is_full_name(spelling: str) -> bool:
    """Whether a name reads as the full name of a person: two or three capitalised words of letters."""
    words = spelling.split()
    return 2 <= len(words) <= 3 and all(
        word[0].isupper() and len(word) > 1 and word.replace("-", "").replace("'", "").isalpha() for word in words
    )


@dataclass(frozen=True, slots=True)
class CurrentNames:
    """The current name for each former name. Former names are keys in folded form; `spellings` has their spelling."""

    by_former: Mapping[str, str]
    spellings: Mapping[str, str]

    def renamed_fact(self, fact: Fact) -> Fact:
        """Return the fact with former names replaced by current ones.

        A fact about a renaming keeps the former name in its sentence, and so does a fact whose sentence also contains
        the new name.
        """
        own = folded(fact.former_name) if fact.former_name else None
        statement, value, limited_to, outcome = self._renamed_texts(fact, own)
        if own and own in self.by_former and own not in folded(statement):
            statement = f"{statement.rstrip('.')} (formerly {fact.former_name})."
        return replace(
            fact,
            subject=self.current_subject(fact.subject),
            statement=statement,
            value=value,
            exceptions=tuple(map(self.renamed_fact, fact.exceptions)),
            may_be=tuple(map(self.current_subject, fact.may_be)),
            limited_to=limited_to or None,
            outcome=outcome or None,
        )

    def _renamed_texts(self, fact: Fact, own: str | None) -> Sequence[str]:
        """Return the statement, value, limit and outcome of a fact with current names. The former name `own` stays."""
        texts = [fact.statement, fact.value, fact.limited_to or "", fact.outcome or ""]
        for former in sorted(self.by_former, key=len, reverse=True):
            name = self.by_former[former]
            if former != own and not _has_words_of_new_name(fact.statement, former, name):
                # In a text about the subject itself the name may be written in lower case.
                spelling = former if folded(fact.subject) == former else self.spellings[former]
                texts = [_with_current_name(text, former, spelling, name) for text in texts]
        return texts

    def current_subject(self, name: str) -> str:
        """Return the current name of a subject."""
        return self.by_former.get(folded(name), name) if self.by_former else name

    def with_other_names(self, query: str) -> str:
        """Return the query, followed by the other names (former or current) of subjects that it names."""
        named = {folded(name) for pair in self.by_former.items() for name in pair if _padded(name) in _padded(query)}
        others = [
            other
            for former, current in self.by_former.items()
            for name, other in ((former, current), (folded(current), former))
            if name in named and folded(other) not in named
        ]
        return " ".join([query, *dict.fromkeys(others)])


def current_names(facts: Iterable[Fact], at: datetime) -> CurrentNames:
    """Return the names that are current at `at`, from the facts about renamings. Later renamings win.

    A name that is only announced for later is not current yet.
    """
    names: dict[str, str] = {}
    spellings: dict[str, str] = {}
    began = (
        fact
        for fact in facts
        if fact.status in _NAMING_STATUSES and fact.valid_from is not None and fact.valid_from <= at
    )
    renaming = (fact for fact in began if fact.former_name is not None)
    for fact in sorted(renaming, key=lambda fact: (fact.said_at, fact.id)):
        former = folded(fact.former_name or "")
        for earlier in [earlier for earlier, name in names.items() if folded(name) == former]:
            names[earlier] = fact.subject
        names[former], spellings[former] = fact.subject, fact.former_name or ""
        names.pop(folded(fact.subject), None)
    return CurrentNames(names, spellings)


def facts_under_current_names(facts: Sequence[Fact], at: datetime) -> list[Fact]:
    """Return all facts of a scope, given with their status at `at`, with the names that are current then."""
    names = current_names(facts, at)
    return list(map(names.renamed_fact, facts)) if names.by_former else list(facts)


def _with_current_name(text: str, former: str, spelling: str, name: str) -> str:
    """Return a text with a former name replaced by the current one.

    If the former name was spelt with a capital letter, the same word in lower case is not replaced: "Mercury" is not
    "mercury".
    """
    spaced = r"\s+".join(map(re.escape, former.split()))

    def replacement(written: re.Match[str]) -> str:
        is_common_word = written[0].islower() and not spelling.islower()
        return written[0] if is_common_word else name

    return re.sub(rf"{_NAME_START}{spaced}{_NAME_END}", replacement, text, flags=re.IGNORECASE)


def _has_words_of_new_name(text: str, former: str, name: str) -> bool:
    """Whether a text contains all words that the new name has in addition to the former one."""
    new_words = {*folded_words(name)}.difference(folded_words(former))
    return bool(new_words) and new_words.issubset(folded_words(text))


def _padded(text: str) -> str:
    """Return the words of a text, each with a space before and after it, so that only whole words match."""
    return f" {' '.join(folded_words(text))} "
