"""Find the foreign stretches of a person's turn: text that somebody else wrote, for example pasted text. Pure.

Foreign stretches have the role `pasted`. They explain what a person asks for, but they are not evidence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from afterword.facts.transcripts import Role, Turn
from afterword.privacy.foreign.documents import find_documents, find_posts_and_scripts
from afterword.privacy.foreign.lines import ForeignKind, ForeignStretch, split_lines
from afterword.privacy.foreign.markup import find_markup
from afterword.privacy.foreign.messages import find_messages
from afterword.privacy.foreign.writing_style import WritingHabit, find_style_changes, writing_habit_of
from afterword.privacy.normalisation import PlainText, plain_form, plain_form_with_emphasis
from afterword.text_caches import text_cache

__all__ = ["ForeignKind", "ForeignStretch", "fill_foreign_stretches", "foreign_stretches", "foreign_stretches_by_turn"]

FILLER = "\x00"
"""Replaces each character of a foreign stretch, so that positions in the text stay."""

_MOST_EARLIER_TURNS = 12
_SHORTEST_FOREIGN = 8


def foreign_stretches(
    text: str, own_names: Collection[str] = (), habit: WritingHabit | None = None
) -> tuple[ForeignStretch, ...]:
    """Return the foreign stretches of a person's turn, in order and without overlap.

    `own_names` are the names of the person. `habit` describes how they write in their earlier turns.
    """
    if len(text) < _SHORTEST_FOREIGN:
        return ()
    return _find_stretches(text, tuple(sorted({name.casefold() for name in own_names})), habit)


@text_cache(512)
def _find_stretches(text: str, own_names: tuple[str, ...], habit: WritingHabit | None) -> tuple[ForeignStretch, ...]:
    marked, plain = plain_form_with_emphasis(text), plain_form(text)
    marked_lines, lines = split_lines(marked.text), split_lines(plain.text)
    stretches = [
        *_original_stretches(marked, find_markup(marked.text, marked_lines)),
        *_original_stretches(plain, find_messages(plain.text, lines, own_names)),
        *_original_stretches(plain, find_documents(plain.text, lines)),
        *_original_stretches(plain, find_posts_and_scripts(lines)),
        *_original_stretches(plain, find_style_changes(plain.text, lines, habit)),
    ]
    merged: list[ForeignStretch] = []
    for stretch in sorted(stretches, key=lambda stretch: (stretch.start, -stretch.end)):
        last = merged[-1] if merged else None
        if last is not None and stretch.start <= last.end + 1:
            merged[-1] = ForeignStretch(last.start, max(last.end, stretch.end), last.kind)
        else:
            merged.append(stretch)
    return tuple(merged)


def _original_stretches(plain: PlainText, stretches: Iterable[ForeignStretch]) -> Iterator[ForeignStretch]:
    """Yield the stretches of a plain form as stretches of the original text, without empty ones."""
    for stretch in stretches:
        if stretch.start < stretch.end:
            yield ForeignStretch(*plain.original_span(stretch.start, stretch.end), stretch.kind)


def foreign_stretches_by_turn(
    turns: Sequence[Turn], numbers: Collection[int] | None = None
) -> list[tuple[ForeignStretch, ...]]:
    """Return the foreign stretches of each turn; if `numbers` are given, only those of the turns with these numbers.

    Only people's turns have foreign stretches.
    The style of a turn is compared with the first twelve turns of its speaker, so later turns do not change the result.
    """
    earlier: dict[str, list[str]] = {}
    by_turn: list[tuple[ForeignStretch, ...]] = []
    for turn in turns:
        said = earlier.setdefault(turn.speaker, [])
        is_wanted = numbers is None or turn.number in numbers
        if turn.role is not Role.HUMAN or not (is_wanted or len(said) < _MOST_EARLIER_TURNS):
            by_turn.append(())
            continue
        stretches = foreign_stretches(turn.text, (turn.speaker,), writing_habit_of(tuple(said)) if said else None)
        by_turn.append(stretches if is_wanted else ())
        own = fill_foreign_stretches(turn.text, stretches).replace(FILLER, "").strip()
        if own and len(said) < _MOST_EARLIER_TURNS:
            said.append(own)
    return by_turn


def fill_foreign_stretches(text: str, stretches: Iterable[ForeignStretch]) -> str:
    """Return a text with each character of its foreign stretches replaced by `FILLER`. Positions in the text stay."""
    parts, last = [], 0
    for stretch in stretches:
        parts += [text[last : stretch.start], FILLER * (stretch.end - max(last, stretch.start))]
        last = max(last, stretch.end)
    return "".join([*parts, text[last:]])
