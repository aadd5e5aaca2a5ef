"""Measure how much of the generated secrets and wishes is recognised, and print it as a table.

Run it with `python tests/support/privacy_table.py`; docs/security.md holds its output.
"""

from __future__ import annotations

import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from afterword.privacy.record_requests import Markers, RecordChange
from afterword.privacy.redaction import Masking
from chat_set_cases import chat_set_honest, chat_set_secrets, chat_set_wishes
from fresh_record_cases import fresh_record_cases
from fresh_secret_cases import fresh_secret_cases, later_secret_cases
from off_record_cases import RecordCase, record_cases
from plain_secret_cases import plain_harmless_cases, plain_secret_cases
from record_wording_cases import record_wording_cases
from secret_cases import SecretCase, harmless_cases, held_out_cases, secret_cases


@dataclass(frozen=True, slots=True)
class Row:
    """How many cases of one category there are, and how many of them were judged wrongly."""

    category: str
    cases: int
    wrong: int


def is_missed(case: SecretCase) -> bool:
    """Return whether the secret of a case can still be read in what is stored."""
    masking = Masking()
    stored = "\n".join(masking.mask_next_turn(text, speaker) for speaker, text in case.turns)
    return _letters(case.secret) in _letters(stored)


def secret_rows() -> list[Row]:
    """Return the missed secrets by category."""
    return _rows(
        (case.category, is_missed(case))
        for cases in (
            *(secret_cases, held_out_cases, fresh_secret_cases, later_secret_cases, plain_secret_cases),
            chat_set_secrets,
        )
        for case in cases()
    )


def language_rows() -> list[Row]:
    """Return the missed secrets by language."""
    return _rows((case.language, is_missed(case)) for case in secret_cases() if case.language != "any")


def harmless_rows() -> list[Row]:
    """Return the harmless texts that were changed, by category."""
    cases = (*harmless_cases(), *plain_harmless_cases(), *chat_set_honest())
    return _rows((case.category, Masking().mask_next_turn(case.text, "user") != case.text) for case in cases)


def record_rows() -> list[Row]:
    """Return the wishes that were not honoured, and the honest sentences that were hidden, by category."""
    hiding = {RecordChange.THIS, RecordChange.OFF}
    honest = (RecordCase(case.category, case.text, is_hidden=False) for case in chat_set_honest())
    cases = [*record_cases(), *fresh_record_cases(), *record_wording_cases(), *chat_set_wishes(), *honest]
    return _rows((case.category, (Markers().requested_change(case.text) in hiding) != case.is_hidden) for case in cases)


def table() -> str:
    """Return all rows as a Markdown table."""
    parts = [
        ("secrets", secret_rows(), "missed"),
        ("secrets by language", language_rows(), "missed"),
        ("harmless texts", harmless_rows(), "changed"),
        ("off the record", record_rows(), "judged wrongly"),
    ]
    lines = ["| what | cases | wrong | share |", "|---|---|---|---|"]
    for title, rows, wrong in parts:
        total = Row(f"**{title}, {wrong}**", sum(row.cases for row in rows), sum(row.wrong for row in rows))
        lines += [
            f"| {row.category} | {row.cases} | {row.wrong} | {row.wrong / row.cases:.1%} |" for row in (total, *rows)
        ]
    return "\n".join(lines)


def _rows(results: Iterable[tuple[str, bool]]) -> list[Row]:
    cases: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for category, is_wrong in results:
        cases[category] += 1
        wrong[category] += is_wrong
    return [Row(category, count, wrong[category]) for category, count in cases.items()]


def _letters(text: str) -> str:
    return "".join(character for character in unicodedata.normalize("NFKC", text) if character.isalnum())


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
