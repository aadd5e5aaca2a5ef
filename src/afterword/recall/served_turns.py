"""What of a person's turn an agent is shown: their own words, and nothing that commands an assistant. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from afterword.facts.transcripts import SourceTurn
from afterword.privacy.foreign.stretches import FILLER, foreign_stretches, without_foreign
from afterword.privacy.normalisation import visible_text
from afterword.privacy.prompt_injection import commands_assistant

_LEFT_OUT = "[…]"
_FILLED = re.compile(f"{FILLER}+")


@lru_cache(maxsize=20_000)
def served_turn(turn: SourceTurn) -> SourceTurn | None:
    """Return a turn as an agent is shown it, or None if nothing of it may be shown.

    Pasted stretches become `[…]`. A turn with a command to an assistant is not shown at all.
    """
    own = _FILLED.sub(_LEFT_OUT, without_foreign(turn.text, foreign_stretches(turn.text, (turn.speaker,))))
    if commands_assistant(own) or not any(sign.isalnum() for sign in own):
        return None
    shown = visible_text(own)
    return turn if shown == turn.text else replace(turn, text=shown)
