"""Where to look for what bears on a statement: its slot, its subject, and every word of it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from afterword.store.assertions import OWNER, Act, Assertion, folded
from afterword.store.likeness import Wording, wording

K = TypeVar("K", bound=Hashable)


class Postings:
    """The statements of a scope by what may tie others to them. Never changed in place."""

    def __init__(
        self,
        by_id: Mapping[str, Assertion],
        wordings: Mapping[str, Wording],
        ids: Mapping[Hashable, tuple[str, ...]],
    ) -> None:
        self.by_id, self.wordings, self._ids = by_id, wordings, ids

    @classmethod
    def of(cls, assertions: Iterable[Assertion]) -> Postings:
        """Return the postings of these statements."""
        by_id = {one.id: one for one in assertions}
        wordings = {name: wording(one) for name, one in by_id.items()}
        ids: dict[Hashable, list[str]] = defaultdict(list)
        for name, one in by_id.items():
            for key in _keys(one, wordings[name]):
                ids[key].append(name)
        return cls(by_id, wordings, {key: tuple(found) for key, found in ids.items()})

    def moved(self, gone: Sequence[Assertion], come: Sequence[Assertion]) -> Postings:
        """Return the postings after statements that are there have gone and others come."""
        by_id, wordings = {**self.by_id}, {**self.wordings}
        left = [(key, one.id) for one in gone for key in _keys(one, wordings[one.id])]
        for one in gone:
            del by_id[one.id], wordings[one.id]
        by_id.update((one.id, one) for one in come)
        wordings.update((one.id, wording(one)) for one in come)
        new = [(key, one.id) for one in come for key in _keys(one, wordings[one.id])]
        return Postings(by_id, wordings, with_moved(self._ids, left, new))

    def near(self, one: Assertion) -> set[str]:
        """Return the ids of all that may bear on a statement, itself too."""
        said = self.wordings[one.id]
        label = folded(one.subject)
        keys: list[Hashable] = [one.slot, *said.said, (_VAGUE, label)]
        if label != OWNER or is_vague(one, said):
            keys.append((_ABOUT, label))
        return {name for key in keys for name in self._ids.get(key, ())}


_ABOUT, _VAGUE = 1, 2


def is_vague(one: Assertion, said: Wording) -> bool:
    """Whether it may take back anything that was said of its subject."""
    return one.act is Act.ERASE or (one.act is not Act.STATE and said.names_little)


def _keys(one: Assertion, said: Wording) -> list[Hashable]:
    label = folded(one.subject)
    keys: list[Hashable] = [one.slot, *said.said, (_ABOUT, label)]
    return [*keys, (_VAGUE, label)] if is_vague(one, said) else keys


def with_moved(
    before: Mapping[K, tuple[str, ...]], left: Iterable[tuple[K, str]], new: Iterable[tuple[K, str]]
) -> Mapping[K, tuple[str, ...]]:
    """Return the ids by key, without those that have left their key, and with the new ones."""
    gone: dict[K, set[str]] = defaultdict(set)
    come: dict[K, list[str]] = defaultdict(list)
    for key, name in left:
        gone[key].add(name)
    for key, name in new:
        come[key].append(name)
    if not gone and not come:
        return before
    found = dict(before)
    for key, stale in gone.items():
        found[key] = tuple(name for name in found[key] if name not in stale)
        if not found[key]:
            del found[key]
    for key, names in come.items():
        found[key] = (*found.get(key, ()), *names)
    return found
