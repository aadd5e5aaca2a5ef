"""Candidates without secrets: a model may copy one from elsewhere, or make one up. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from afterword.extractors.candidates import Candidate, Citation
from afterword.privacy.policy import Privacy


def masked(candidates: Iterable[Candidate], privacy: Privacy) -> list[Candidate]:
    """Return the candidates as they came, those that hold a secret with a mask in its place."""
    return [_masked(one, privacy) for one in candidates]


def _masked(one: Candidate, privacy: Privacy) -> Candidate:
    told = (one.statement, one.subject, one.limited_to or "", one.outcome or "")
    cited = tuple(citation.quote for citation in one.evidence)
    value, statement, subject, limited_to, outcome, *quotes = privacy.mask_fields(
        one.attribute, one.value, *told, *cited
    )
    evidence = [Citation(turn=item.turn, quote=quote) for item, quote in zip(one.evidence, quotes, strict=True)]
    shown = {"value": value, "statement": statement, "subject": subject, "evidence": evidence}
    return one.model_copy(update={**shown, "limited_to": limited_to or None, "outcome": outcome or None})
