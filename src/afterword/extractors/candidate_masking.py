"""Mask secrets in candidates, because a model may copy one or make one up. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from afterword.extractors.candidates import Candidate, Citation
from afterword.privacy.policy import Privacy


def mask_candidates(candidates: Iterable[Candidate], privacy: Privacy) -> list[Candidate]:
    """Return the candidates with every secret masked."""
    return [_mask(candidate, privacy) for candidate in candidates]


def _mask(candidate: Candidate, privacy: Privacy) -> Candidate:
    texts = (
        candidate.value,
        candidate.statement,
        candidate.subject,
        candidate.limited_to or "",
        candidate.outcome or "",
        candidate.former_name or "",
    )
    quotes = [citation.quote for citation in candidate.evidence]
    masked_texts = privacy.mask_fields(candidate.attribute, *texts, *quotes)
    value, statement, subject, limited_to, outcome, former_name, *quotes = masked_texts
    evidence = [
        Citation(turn=citation.turn, quote=quote) for citation, quote in zip(candidate.evidence, quotes, strict=True)
    ]
    masked = {"value": value, "statement": statement, "subject": subject, "evidence": evidence}
    optional = {"limited_to": limited_to or None, "outcome": outcome or None, "former_name": former_name or None}
    return candidate.model_copy(update={**masked, **optional})
