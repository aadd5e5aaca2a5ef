"""`ExtractorAgent`: an AutoGen agent that answers with the facts in the messages that it receives."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, StructuredMessage, ToolCallSummaryMessage
from autogen_agentchat.state import BaseState
from autogen_core import CancellationToken
from autogen_core.models import RequestUsage
from pydantic import BaseModel, Field, computed_field

from afterword.agents.memory_settings import named_scope
from afterword.extractors.extractor import Extraction, Extractor, Usage
from afterword.extractors.grounding import Grounding, ground
from afterword.extractors.readers.memory_marks import split_injected_memory
from afterword.extractors.windows import cut_windows
from afterword.extractors.words_called_private import WordsCalledPrivate
from afterword.facts.assertions import Assertion, Kind, SpeechAct
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, TimeBasis, Transcript, Turn, find_owners, is_generic_name
from afterword.facts.words import folded
from afterword.privacy.off_record import hide_off_record
from afterword.privacy.policy import Privacy

READABLE = "{summary}"


class Quote(BaseModel):
    """Words of a turn that support a fact."""

    turn: int
    speaker: str
    quote: str


class ExtractedFact(BaseModel):
    """One grounded fact, or one withdrawal (see `act`)."""

    kind: Kind
    subject: str
    attribute: str
    value: str
    statement: str
    act: SpeechAct = SpeechAct.STATE
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    evidence: list[Quote]


class ExtractedFacts(BaseModel):
    """The facts in the new messages, and how many candidates were refused, by reason."""

    facts: list[ExtractedFact] = Field(default_factory=list)
    rejected: dict[str, int] = Field(default_factory=dict)

    @computed_field  # type: ignore[prop-decorator]  # pydantic reads the property
    @property
    def summary(self) -> str:
        """The facts as a list for people."""
        if not self.facts:
            return "No facts found."
        lines = []
        for fact in self.facts:
            turns = ", ".join(str(number) for number in sorted({quote.turn for quote in fact.evidence}))
            statement = fact.statement if fact.act is SpeechAct.STATE else f"taken back: {fact.statement}"
            lines.append(f"- {statement} [turn {turns}]")
        return "\n".join(lines)


class HeardTurn(BaseModel):
    """One message that the agent was given."""

    speaker: str
    role: Role
    text: str
    said_at: datetime
    message_id: str


class ExtractorAgentState(BaseState):
    """The turns that the agent has heard, and how many of them it has read."""

    type: str = "ExtractorAgentState"
    heard: list[HeardTurn] = Field(default_factory=list)
    read_to: int = 0


class ExtractorAgent(BaseChatAgent):
    """Answers each call with a `StructuredMessage[ExtractedFacts]`: the facts in the messages, with their quotes.

    Earlier messages are kept as context. A team with this agent needs
    `custom_message_types=[StructuredMessage[ExtractedFacts]]`. `humans` are names of people, in addition to user, human
    and user_proxy. `user` or `scope` names the person whom statements in the first person are about, by default "user".
    `privacy` says how secrets are masked and what counts as off the record. Nothing is stored; use `process_session` to
    store facts. After an `ExtractionError` the next call reads the same messages again.
    """

    def __init__(
        self,
        name: str = "extractor",
        *,
        extractor: Extractor | None = None,
        user: str | None = None,
        scope: Scope | str | None = None,
        humans: Collection[str] = (),
        privacy: Privacy | None = None,
        description: str = "Finds preferences, facts and decisions in the conversation, each with its words.",
    ) -> None:
        super().__init__(name, description)
        if extractor is None:
            # Imported only here: an agent with an extractor of its own never loads the rules.
            from afterword.extractors.rules import RulesExtractor

            extractor = RulesExtractor()
        self._extractor = extractor
        self._scope = Scope.user("user") if user is None and scope is None else named_scope(user, scope)
        self._humans = frozenset(folded(human) for human in humans)
        self._privacy = privacy or Privacy()
        self._masking = self._privacy.new_masking()
        self._state = ExtractorAgentState()

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """The type of the messages that the agent answers with."""
        return (StructuredMessage[ExtractedFacts],)

    async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:
        """Return the facts in the new messages. Raises `ExtractionError` if the extractor gave no answer."""
        self._add_heard_turns(messages)
        reading = asyncio.ensure_future(self._extract_new_facts())
        cancellation_token.link_future(reading)
        facts, usage = await reading
        self._state.read_to = len(self._state.heard)
        answer = StructuredMessage[ExtractedFacts](
            content=facts,
            source=self.name,
            format_string=READABLE,
            models_usage=RequestUsage(prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens),
        )
        return Response(chat_message=answer)

    async def on_reset(self, cancellation_token: CancellationToken) -> None:  # noqa: ARG002 - the signature is AutoGen's
        """Forget all turns."""
        self._state = ExtractorAgentState()

    async def save_state(self) -> Mapping[str, Any]:
        """Return the state of the agent: the turns that it has received so far."""
        return self._state.model_dump(mode="json")

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Load a state that `save_state` has returned. Raises ValueError for that of another kind of agent."""
        if state.get("type") != ExtractorAgentState().type:
            raise ValueError(f"a state of type {state.get('type')!r} does not belong to an ExtractorAgent")
        self._state = ExtractorAgentState.model_validate(state)

    def _add_heard_turns(self, messages: Sequence[BaseChatMessage]) -> None:
        known = {turn.message_id for turn in self._state.heard}
        for message in messages:
            text = "\n".join(
                piece.text for piece in split_injected_memory(message.to_model_text()) if not piece.is_memory
            )
            if text.strip() and message.id not in known and message.source != self.name:
                self._state.heard.append(
                    HeardTurn(
                        speaker=message.source,
                        role=self._role_of_speaker(message),
                        text=self._masking.mask_next_turn(text, message.source),
                        said_at=message.created_at,
                        message_id=message.id,
                    )
                )
        for heard, turn in zip(self._state.heard, hide_off_record(self._turns(), self._privacy.markers), strict=True):
            heard.text = turn.text

    def _role_of_speaker(self, message: BaseChatMessage) -> Role:
        if isinstance(message, ToolCallSummaryMessage):
            return Role.TOOL
        is_person = is_generic_name(message.source) or folded(message.source) in self._humans
        return Role.HUMAN if is_person else Role.AGENT

    def _turns(self) -> tuple[Turn, ...]:
        return tuple(Turn(number, **heard.model_dump()) for number, heard in enumerate(self._state.heard, start=1))

    def _transcript(self) -> Transcript:
        turns = self._turns()
        people = tuple(dict.fromkeys(turn.speaker for turn in turns if turn.role is Role.HUMAN))
        return Transcript(turns, layout="live", humans=people, time_basis=TimeBasis.TURNS)

    async def _extract_new_facts(self) -> tuple[ExtractedFacts, Usage]:
        """Return the facts that cite a new turn, and the model's usage. Windows without new turns are skipped."""
        transcript, read_to = self._transcript(), self._state.read_to
        owners = find_owners(transcript.humans, transcript.assumed, self._scope)
        assertions: dict[str, Assertion] = {}
        refused = Counter[str]()
        usage = Usage()
        for window in cut_windows(transcript, owners):
            if window.turns[-1].number <= read_to:
                continue
            extraction = await self._extractor.extract(window)
            usage += extraction.usage
            grounding = self._ground(extraction, transcript, owners)
            assertions |= {assertion.id: assertion for assertion in grounding.assertions}
            refused.update(rejection.reason for rejection in grounding.rejections)
        facts = [
            ExtractedFact.model_validate(assertion, from_attributes=True)
            for assertion in assertions.values()
            if max(evidence.turn or 0 for evidence in assertion.evidence) > read_to
        ]
        return ExtractedFacts(facts=facts, rejected=dict(refused)), usage

    def _ground(self, extraction: Extraction, transcript: Transcript, owners: tuple[str, ...]) -> Grounding:
        """Ground the candidates in the transcript, both without the words that the extractor called private."""
        private = WordsCalledPrivate(self._privacy)
        private.add(extraction, transcript.turns)
        shown = replace(transcript, turns=private.hide_in_turns(transcript.turns))
        candidates = map(private.mask_in_candidate, extraction.candidates)
        return ground(candidates, shown, scope=self._scope, session_id=self.name, owners=owners)
