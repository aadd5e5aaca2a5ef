"""What of a person's turn an agent is shown: their own words, and nothing that commands an assistant. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from afterword.facts.transcripts import SourceTurn
from afterword.privacy.foreign.stretches import FILLER, foreign_stretches, without_foreign
from afterword.privacy.normalisation import visible_text
from afterword.privacy.prompt_injection import commands_assistant

_LEFT_OUT = "[…]"
_FILLED = re.compile(f"{FILLER}+")


CHECKS = "1:"
"""The version of what decides, which a stored verdict begins with. Verdicts of another version are not used."""
_WHOLE, _CHANGED = "=", "+"


def stored_verdict(speaker: str, text: str) -> str:
    """Return what is stored with a turn: whether an agent is shown it, and its text where that is another."""
    own = _FILLED.sub(_LEFT_OUT, without_foreign(text, foreign_stretches(text, (speaker,))))
    if commands_assistant(own) or not any(sign.isalnum() for sign in own):
        return CHECKS
    shown = visible_text(own)
    return f"{CHECKS}{_WHOLE}" if shown == text else f"{CHECKS}{_CHANGED}{shown}"


def served_turn(turn: SourceTurn) -> SourceTurn | None:
    """Return a turn as an agent is shown it, or None if nothing of it may be shown.

    Pasted stretches become `[…]`. A turn with a command to an assistant is not shown at all.
    """
    stored = turn.shown
    if stored is None or not stored.startswith(CHECKS):
        stored = stored_verdict(turn.speaker, turn.text)
    verdict = stored[len(CHECKS) :]
    if verdict == _WHOLE:
        return turn
    return replace(turn, text=verdict[len(_CHANGED) :], shown=None) if verdict else None
