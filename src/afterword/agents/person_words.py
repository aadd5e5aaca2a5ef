"""Finds statements in the last message of a person in a live conversation, for the memory tools.

The arguments of a tool are the words of an agent, and a web page may have told the agent what to say. So they are not
evidence: only what the extractor finds in the person's own message counts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from autogen_core.models import AssistantMessage, LLMMessage, UserMessage

from afterword.agents.saved_blocks import BLOCK_SOURCE
from afterword.extractors.extractor import Extractor, Window
from afterword.extractors.grounding import ground
from afterword.extractors.plain_statements import rests_on_plain_statement
from afterword.extractors.readers.memory_marks import split_injected_memory
from afterword.extractors.words_called_private import WordsCalledPrivate
from afterword.facts.assertions import Assertion
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, Transcript, Turn, find_owners
from afterword.facts.words import folded
from afterword.normal_form import composed
from afterword.privacy.off_record import hide_off_record
from afterword.privacy.policy import Privacy
from afterword.privacy.redaction import Masking

LIVE = "live"
"""The layout and the session id of the transcript of a running conversation."""


class LiveConversation:
    """The turns of a running conversation. In `turns`, secrets and what was said off the record are masked."""

    def __init__(self, said: Sequence[Turn], privacy: Privacy) -> None:
        self._unmasked_turns, self._privacy = tuple(said), privacy
        self.turns: tuple[Turn, ...] = privacy.mask_and_hide_turns(said)

    @classmethod
    def from_messages(
        cls, messages: Sequence[LLMMessage], humans: Collection[str], privacy: Privacy, at: datetime
    ) -> LiveConversation:
        """Return the conversation of these messages. `humans` are the names of people, as `folded` returns them."""
        turns: list[Turn] = []
        for message in messages:
            if not isinstance(message, UserMessage | AssistantMessage) or message.source == BLOCK_SOURCE:
                continue
            text = composed(_text_without_memory(message))
            if text:
                is_person = isinstance(message, UserMessage) and folded(message.source) in humans
                role = Role.HUMAN if is_person else Role.AGENT
                turns.append(Turn(len(turns) + 1, message.source, role, text, at))
        return cls(turns, privacy)

    @property
    def last_turn_of_person(self) -> Turn | None:
        """The last turn of a person, None if no person has said anything."""
        return next((turn for turn in reversed(self.turns) if turn.role is Role.HUMAN), None)

    def reason_not_to_store(self, *texts: str) -> str | None:
        """Return why an agent must not store these texts, not even for a person's review; None if it may.

        The reason is that they contain a secret of this conversation, or that they repeat or answer something that was
        said off the record.
        """
        masking = Masking(self._privacy.kinds, thorough=True)
        for turn in self._unmasked_turns:
            masking.mask_next_turn(turn.text, turn.speaker)
        if any(masking.mask_text(text) != text for text in texts):
            return "it contains a secret"
        noted = Turn(len(self._unmasked_turns) + 1, "agent", Role.AGENT, "\n".join(texts))
        is_hidden = hide_off_record([*self._unmasked_turns, noted], self._privacy.markers)[-1].text != noted.text
        return "it was said off the record" if is_hidden else None

    async def plain_assertions_in_last_turn(self, extractor: Extractor | None, scope: Scope) -> tuple[Assertion, ...]:
        """Return the assertions that an extractor finds in the person's last message, after the usual checks.

        Only plain statements count here. What a question, a denial, a supposition or a report may mean is left to the
        later processing of the whole session. Without an extractor, there are none.
        """
        last = self.last_turn_of_person
        if last is None or extractor is None:
            return ()
        before = tuple(turn for turn in self.turns if turn.number < last.number)
        humans = tuple(dict.fromkeys(turn.speaker for turn in self.turns if turn.role is Role.HUMAN))
        owners = find_owners(humans, (), scope)
        window = Window(1, (last,), before, owners, humans)
        extraction = await extractor.extract(window)
        transcript = Transcript((*before, last), LIVE, humans=humans)
        private = WordsCalledPrivate(self._privacy)
        private.add(extraction, transcript.turns)
        transcript = replace(transcript, turns=private.hide_in_turns(transcript.turns))
        candidates = [private.mask_in_candidate(candidate) for candidate in extraction.candidates]
        grounded = ground(candidates, transcript, scope=scope, session_id=LIVE, owners=owners).assertions
        return tuple(said for said in grounded if rests_on_plain_statement(said, transcript.turns[-1]))


def _text_without_memory(message: UserMessage | AssistantMessage) -> str:
    """Return the text of a message without tool calls and without memory blocks that were put into it."""
    content = message.content
    parts = [content] if isinstance(content, str) else [part for part in content if isinstance(part, str)]
    return "\n".join(
        piece.text for part in parts for piece in split_injected_memory(part) if not piece.is_memory
    ).strip()
