"""The sections of the settings: what each setting means, its type and its default."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from decimal import Decimal
from importlib.util import find_spec
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from afterword.facts.assertions import Kind
from afterword.facts.findings import DAYS, MOST_DAYS, FindingPolicy, ToolFindingPolicy
from afterword.facts.local_time import read_zone
from afterword.privacy.policy import FACTS_PER_SESSION, Privacy
from afterword.privacy.record_requests import OFF, ON, Markers
from afterword.privacy.secret_kinds import SecretKind
from afterword.store.database.urls import DEFAULT_URL
from afterword.store.forgetting.forgotten_statements import ERASE_WAIT
from afterword.store.forgetting.retention import Retention
from afterword.store.limits import RetryPolicy, StoreLimits

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]


class Options(BaseModel):
    """The base of all sections. Unknown settings are refused."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


class StoreOptions(Options):
    """The database that holds the facts."""

    url: str = Field(default=DEFAULT_URL, description="the store: a SQLite file or a PostgreSQL database")
    pool_size: int = Field(default=10, ge=1, description="connections of a process to PostgreSQL")
    statement_timeout_s: float = Field(default=60.0, gt=0, description="how long one statement of PostgreSQL may take")
    cache_mb: int | None = Field(
        default=None,
        ge=1,
        description="megabytes of memory for a cache of facts; by default a quarter of what the process may use",
    )

    def limits(self) -> StoreLimits:
        """Return the limits that the store takes: connections, time of a statement, cache."""
        cache_bytes = None if self.cache_mb is None else self.cache_mb * 1_000_000
        return StoreLimits(self.pool_size, self.statement_timeout_s, cache_bytes)


class RetryOptions(Options):
    """How often a failed session is tried before it is set aside.

    Each pause between two tries is four times as long as the one before it.
    """

    tries: int = Field(default=6, ge=1, description="how often a session is tried in all")
    first_pause_s: float = Field(default=60.0, ge=0, description="the pause before the second try")
    longest_pause_s: float = Field(default=6 * 3600.0, ge=0, description="the longest pause between two tries")

    def policy(self) -> RetryPolicy:
        """Return the retry policy that the store takes."""
        return RetryPolicy(self.tries, self.first_pause_s, self.longest_pause_s)


def _checked_zone(name: str) -> str:
    read_zone(name)
    return name


def _checked_due_times(written: float | str) -> float | str:
    # Imported only here: a live memory needs no schedule.
    from afterword.pipeline.background.due_times import Rhythm

    Rhythm.parse(written)
    return written


Zone = Annotated[str, AfterValidator(_checked_zone)]
DueTimes = Annotated[float | str, AfterValidator(_checked_due_times)]


class ScheduleOptions(Options):
    """How often `afterword schedule` runs each job: an interval in seconds, or five cron fields.

    "*/5 * * * *", for example, is every five minutes.
    """

    pending: DueTimes = Field(default=60, description="process recorded sessions")
    retries: DueTimes = Field(default=60, description="queue failed sessions again whose pause is over")
    consolidation: DueTimes = Field(default=3600, description="consolidate the memories that are due")
    embedding: DueTimes = Field(default=60, description="make missing vectors, if there is an embedder")
    retention: DueTimes = Field(default=24 * 3600.0, description="erase what is older than [retention] allows")
    webhooks: DueTimes = Field(default=15, description="send posts to webhooks")
    timezone: Zone = Field(default="UTC", description="the time zone of cron fields")
    jitter_s: float = Field(default=5.0, ge=0, description="the longest random delay before a job starts")
    lease_s: float = Field(
        default=120.0, gt=0, description="when the process of a job dies, another one starts the job after this time"
    )
    new_sessions: int = Field(
        default=5, ge=1, description="how many new sessions a memory must have before it is consolidated"
    )
    idle_s: float = Field(
        default=600.0, ge=0, description="how long after its last session a memory is consolidated at the earliest"
    )
    apart_s: float = Field(
        default=24 * 3600.0,
        ge=0,
        description="how long after a consolidation a memory is consolidated again at the earliest",
    )
    defer: bool = Field(default=False, description="hand sessions to `afterword worker` instead of processing them")


Days = Annotated[float, Field(gt=0, le=MOST_DAYS)]


class RetentionOptions(Options):
    """How many days sessions and facts are kept. Without a number they are kept for good.

    A number is at most 36,500 days, a century. A fact that only one session supports is erased with that session.
    """

    session_days: Days | None = Field(default=None, description="after the last turn of a session")
    fact_days: Days | None = Field(
        default=None, description="after a fact was last said, for the kinds without a number of their own"
    )
    preference_days: Days | None = Field(default=None, description="for preferences")
    entity_days: Days | None = Field(default=None, description="for entities")
    decision_days: Days | None = Field(default=None, description="for decisions")
    finding_days: Days | None = Field(default=None, description="after a finding of an agent was last found")

    def policy(self) -> Retention:
        """Return the retention policy that the store takes."""
        days = {kind: getattr(self, f"{kind}_days") or self.fact_days for kind in Kind}
        sessions = timedelta(days=self.session_days) if self.session_days else None
        findings = timedelta(days=self.finding_days) if self.finding_days else None
        return Retention(sessions, {kind: timedelta(days=count) for kind, count in days.items() if count}, findings)


class EndpointOptions(Options):
    """The address of an endpoint, and the key that is sent to it."""

    base_url: str | None = Field(
        default=None,
        description="the address of the endpoint; without one the environment's `OPENAI_BASE_URL`, else OpenAI",
    )
    api_key: SecretStr | None = Field(
        default=None, description="the key of the endpoint; without one the environment's `OPENAI_API_KEY`"
    )

    def used_key(self) -> str | None:
        """Return the key that is sent: `api_key`, else the environment's `OPENAI_API_KEY`, else None."""
        return (self.api_key.get_secret_value() if self.api_key else os.environ.get("OPENAI_API_KEY")) or None


class ModelOptions(EndpointOptions):
    """The language model that extracts facts and judges pairs."""

    name: str = Field(default="gpt-4o-mini", description="the name of the model")
    mode: Literal["auto", "json_schema", "tools", "json"] = Field(
        default="auto", description='how JSON is requested; "auto" tries the endpoint once and remembers what works'
    )
    timeout_s: float = Field(default=60.0, gt=0, description="how long one request may take")
    max_retries: int = Field(default=3, ge=0, description="how often a failed request is repeated")
    max_completion_tokens: int | None = Field(
        default=None, gt=0, description="the most tokens of an answer; if a budget is set, 8,192 by default"
    )
    statement_language: str | None = Field(
        default=None,
        pattern=r"^[^\W\d_][\w -]{1,39}$",
        description='the language of statements, such as "English"; by default that of the session',
    )
    detail: Literal["selected", "everything"] = Field(
        default="selected",
        description='which statements become facts: "selected" (what matters in later sessions) or "everything"',
    )


class EmbeddingOptions(EndpointOptions):
    """The embedder, whose vectors let recall rank by meaning as well as by words.

    All settings but `kind` are for an endpoint.
    """

    kind: Literal["auto", "none", "local", "endpoint"] = Field(
        default="auto",
        description='"none", "local" (a model on this machine), "endpoint", or "auto": local where it is installed',
    )
    model: str = Field(default="text-embedding-3-small", description="the name of the model of an endpoint")
    dimension: int = Field(default=1536, ge=1, description="how many numbers a vector has")
    shorten: bool = Field(
        default=False, description="whether vectors of this dimension are requested, which not every model supports"
    )
    timeout_s: float = Field(default=30.0, gt=0, description="how long one request may take")
    batch: int = Field(default=128, ge=1, le=2048, description="texts in one request")

    @property
    def used_kind(self) -> Literal["none", "local", "endpoint"]:
        """The kind that is used on this machine: "auto" is "local" if that is installed, else "none"."""
        if self.kind == "auto":
            return "none" if find_spec("wordllama") is None else "local"
        return self.kind


class RecallOptions(Options):
    """How much memory an agent is told in a turn, and how long it waits for it."""

    budget_tokens: int = Field(default=2_000, ge=1, description="the most tokens of memory in the context of an agent")
    timeout_s: float = Field(default=2.0, gt=0, description="how long a turn of an agent waits for the store")
    other_people: bool = Field(
        default=False,
        description="whether agents are told the words of other people than the owner of a memory, by default",
    )


class BudgetOptions(Options):
    """What models may cost, and how long a session may take.

    A request whose worst-case cost would exceed the budget is not sent. A session that takes longer fails.
    """

    usd_per_run: Decimal | None = Field(default=None, ge=0, description="US dollars for one run")
    usd_per_day: Decimal | None = Field(
        default=None, ge=0, description="US dollars for one day (UTC), over all processes"
    )
    tokens_per_run: int | None = Field(default=None, ge=0, description="tokens for one run")
    tokens_per_day: int | None = Field(default=None, ge=0, description="tokens for one day (UTC), over all processes")
    seconds_per_session: float | None = Field(
        default=300.0,
        gt=0,
        description="how long the work on one session may take, without the time in which a model answers",
    )


class PrivacyOptions(Options):
    """What is never stored (secrets, and what is said off the record), and when forgotten facts are erased."""

    redact: bool = Field(default=True, description="mask secrets before anything is stored or sent")
    redact_kinds: list[SecretKind] = Field(default=list(SecretKind), description="the kinds of secrets that are masked")
    off_record: list[str] = Field(
        default=list(OFF), description="a turn that begins with one of these phrases starts what is off the record"
    )
    on_record: list[str] = Field(default=list(ON), description="a turn that begins with one of these phrases ends it")
    erase: Literal["ask", "auto"] = Field(
        default="ask",
        description='whether "forget that" is erased by `forget --asked` or with its session ("ask"), '
        'or also after a while ("auto")',
    )
    erase_wait_h: float = Field(
        default=ERASE_WAIT / timedelta(hours=1),
        ge=0,
        description='with erase = "auto", how many hours a fact is hidden before it is erased',
    )
    facts_per_session: int = Field(
        default=FACTS_PER_SESSION,
        ge=1,
        description="the most statements of a session, with repetitions; further ones are counted and listed by `why`",
    )

    @property
    def erases_without_approval(self) -> bool:
        """Whether what people asked to forget is erased without approval by an operator."""
        return self.erase == "auto"

    @property
    def erase_wait(self) -> timedelta:
        """How long a fact that somebody asked to forget is hidden before it is erased without approval."""
        return timedelta(hours=self.erase_wait_h)

    def erase_due_at(self, hidden_since: datetime) -> datetime | None:
        """Return when a fact that has been hidden since a time is erased without approval; None if never."""
        return hidden_since + self.erase_wait if self.erases_without_approval else None

    def policy(self) -> Privacy:
        """Return the privacy policy that the store takes."""
        kinds = frozenset(self.redact_kinds if self.redact else ())
        return Privacy(kinds, Markers(tuple(self.off_record), tuple(self.on_record)), self.facts_per_session)


class LogOptions(Options):
    """Which log records the command line writes to standard error, and in which format."""

    format: LogFormat = Field(default="text", description="text, or one JSON object per line")
    level: LogLevel = Field(default="warning", description="the least serious level that is written")


class ServerOptions(Options):
    """How `afterword serve` listens, and what it allows."""

    host: str = Field(default="127.0.0.1", description="the address that it listens on")
    port: int = Field(default=8321, ge=0, le=65535, description="the port that it listens on; 0 takes a free one")
    allowed_hosts: list[str] = Field(default=[], description='further host names that it answers for; "*" is any')
    cors_origins: list[str] = Field(default=[], description="the origins of web pages that may call it")
    requests_per_minute: int = Field(default=1200, ge=1, description="requests that one key may make in a minute")
    longest_body_bytes: int = Field(default=8_000_000, ge=1000, description="the longest body of a request")
    body_timeout_s: float = Field(default=30.0, gt=0, description="how long a body may take to arrive")


class FindingsOptions(Options):
    """Which findings of agents are kept, in memories that have no setting of their own."""

    agents: list[str] = Field(default=[], description='the agents whose findings are kept; "*" is all')
    agents_with_tools: ToolFindingPolicy = Field(
        default=ToolFindingPolicy.REVIEW,
        description='a finding after tool output waits for a person ("review"), or counts at once ("keep")',
    )
    advice: bool = Field(default=False, description="whether the advice of these agents is kept as well")
    days: Days = Field(default=DAYS, description="after how many days a finding expires, unless it is found again")

    def policy(self) -> FindingPolicy:
        """Return the policy for the findings of agents that the store takes."""
        return FindingPolicy(tuple(self.agents), self.agents_with_tools, self.advice, self.days)


class WebhookOptions(Options):
    """How posts to webhooks are sent: only by https to the public internet, unless a setting here allows more."""

    allow_loopback: bool = Field(default=False, description="whether webhooks may be on this machine")
    allow_private: bool = Field(default=False, description="whether webhooks may be in private networks")
    timeout_s: float = Field(default=10.0, gt=0, description="how long one post may take")
    tries: int = Field(default=8, ge=1, description="how often a post is tried in all")
    first_pause_s: float = Field(default=60.0, gt=0, description="the pause before the second try")
    longest_pause_s: float = Field(default=6 * 3600.0, gt=0, description="the longest pause between two tries")
