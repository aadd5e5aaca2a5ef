"""The settings, read from a TOML profile and from the environment, which wins.

Only `composition`, `doctor`, `live_settings`, `client`, `evaluation` and the command line read settings. Other packages
take plain values.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from afterword.errors import AfterwordError
from afterword.facts.assertions import Kind
from afterword.facts.local_time import read_zone
from afterword.finding_options import FindingsOptions
from afterword.privacy.policy import FACTS_PER_SESSION, Privacy
from afterword.privacy.record_requests import OFF, ON, Markers
from afterword.privacy.secret_kinds import Secret
from afterword.setting_names import DELIMITER, PREFIX, PROFILE_VARIABLE, unknown_name
from afterword.store.database.engine import Connections
from afterword.store.database.urls import DEFAULT_URL
from afterword.store.forgetting.erase_requests import WAIT
from afterword.store.forgetting.retention import Retention
from afterword.store.retry_schedule import Retries
from afterword.webhook_options import WebhookOptions

PROFILE = Path("afterword.toml")

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]


class SettingsInvalid(AfterwordError):
    """The profile or an environment variable holds a value that cannot be used. Correct the one that is named."""

    is_usage = True


class StoreOptions(BaseModel):
    """The database that holds the facts.

    Two settings are for PostgreSQL only: `pool_size` is the number of connections of a process, and
    `statement_timeout_s` is how long one statement may take.
    """

    model_config = ConfigDict(extra="forbid")

    url: str = DEFAULT_URL
    pool_size: int = Field(default=10, ge=1)
    statement_timeout_s: float = Field(default=60.0, gt=0)

    def connections(self) -> Connections:
        """Return the settings that the store takes for its connections."""
        return Connections(self.pool_size, self.statement_timeout_s)


class RetryOptions(BaseModel):
    """How often a failed session is tried before it is set aside.

    Each pause between two tries is four times as long as the one before it, up to `longest_pause_s`.
    """

    model_config = ConfigDict(extra="forbid")

    tries: int = Field(default=6, ge=1)
    first_pause_s: float = Field(default=60.0, ge=0)
    longest_pause_s: float = Field(default=6 * 3600.0, ge=0)

    def policy(self) -> Retries:
        """Return the retry policy that the store takes."""
        return Retries(self.tries, self.first_pause_s, self.longest_pause_s)


class ScheduleOptions(BaseModel):
    """How often `afterword schedule` runs each job: an interval in seconds, or five cron fields in `timezone`.

    A scope is consolidated when it has at least `new_sessions` new sessions, nothing has happened in it for `idle_s`
    seconds, and its last consolidation was at least `apart_s` seconds ago.
    """

    model_config = ConfigDict(extra="forbid")

    pending: float | str = 60
    retries: float | str = 60
    consolidation: float | str = 3600
    embedding: float | str = 60
    retention: float | str = 24 * 3600.0
    webhooks: float | str = 15
    timezone: str = "UTC"
    jitter_s: float = Field(default=5.0, ge=0)
    lease_s: float = Field(default=120.0, gt=0)
    new_sessions: int = Field(default=5, ge=1)
    idle_s: float = Field(default=600.0, ge=0)
    apart_s: float = Field(default=24 * 3600.0, ge=0)
    defer: bool = False


class RetentionOptions(BaseModel):
    """How many days sessions and facts are kept; what is not set is kept for good.

    A session is as old as its last turn. Facts that only this session supports are erased with it. A fact is as old as
    its last repetition; `fact_days` is for the kinds that have no number of days of their own. A finding of an agent is
    as old as its last repetition too.
    """

    model_config = ConfigDict(extra="forbid")

    session_days: float | None = Field(default=None, gt=0)
    fact_days: float | None = Field(default=None, gt=0)
    preference_days: float | None = Field(default=None, gt=0)
    entity_days: float | None = Field(default=None, gt=0)
    decision_days: float | None = Field(default=None, gt=0)
    finding_days: float | None = Field(default=None, gt=0)

    def policy(self) -> Retention:
        """Return how long the store keeps sessions and facts."""
        days = {kind: getattr(self, f"{kind}_days") or self.fact_days for kind in Kind}
        sessions = timedelta(days=self.session_days) if self.session_days else None
        findings = timedelta(days=self.finding_days) if self.finding_days else None
        return Retention(sessions, {kind: timedelta(days=count) for kind, count in days.items() if count}, findings)


class EndpointOptions(BaseModel):
    """The address of an endpoint, and the key that is sent to it."""

    model_config = ConfigDict(extra="forbid")

    base_url: str | None = None
    api_key: SecretStr | None = None

    def used_key(self) -> str | None:
        """Return the key that is sent: `api_key`, else the environment's `OPENAI_API_KEY`, else None."""
        return (self.api_key.get_secret_value() if self.api_key else os.environ.get("OPENAI_API_KEY")) or None


class ModelOptions(EndpointOptions):
    """The language model that extracts facts and judges pairs.

    Without `api_key` the environment's `OPENAI_API_KEY` is sent, without `base_url` its `OPENAI_BASE_URL` is asked.
    With `mode` "auto" the endpoint is tried once, and the mode that works is remembered in the user's cache folder.
    """

    name: str = "gpt-4o-mini"
    mode: Literal["auto", "json_schema", "tools", "json"] = "auto"
    timeout_s: float = Field(default=60.0, gt=0)
    max_retries: int = Field(default=3, ge=0)
    max_completion_tokens: int | None = Field(default=None, gt=0)
    statement_language: str | None = Field(default=None, pattern=r"^[^\W\d_][\w -]{1,39}$")


class EmbeddingOptions(EndpointOptions):
    """The embedder, whose vectors let recall rank by meaning as well as by words.

    `kind` is "none", "local" (a model on this machine), "endpoint", or "auto": local where `afterword[local]` is
    installed, else none. All other settings are for an endpoint. With `shorten` the endpoint is asked for vectors of
    `dimension` numbers, which not every model supports. `batch` is the number of texts in one request. Without
    `api_key` the environment's `OPENAI_API_KEY` is sent, without `base_url` its `OPENAI_BASE_URL` is asked.
    """

    kind: Literal["auto", "none", "local", "endpoint"] = "auto"
    model: str = "text-embedding-3-small"
    dimension: int = Field(default=1536, ge=1)
    shorten: bool = False
    timeout_s: float = Field(default=30.0, gt=0)
    batch: int = Field(default=128, ge=1, le=2048)

    @property
    def used_kind(self) -> Literal["none", "local", "endpoint"]:
        """The kind that is used on this machine."""
        if self.kind == "auto":
            return "none" if find_spec("wordllama") is None else "local"
        return self.kind


class RecallOptions(BaseModel):
    """What an agent is told: at most `budget_tokens`, without waiting longer than `timeout_s` for the store.

    With `other_people` agents are also told the words of people who are not the owner of a memory, unless the memory
    says otherwise.
    """

    model_config = ConfigDict(extra="forbid")

    budget_tokens: int = Field(default=2_000, ge=1)
    timeout_s: float = Field(default=2.0, gt=0)
    other_people: bool = False


class BudgetOptions(BaseModel):
    """What models may cost in one run, and in one day (UTC) over all processes.

    A request whose worst-case cost would exceed the budget is not sent. `seconds_per_session` is how long the work on
    one session may take, without the time in which a model answers. A session that takes longer fails.
    """

    model_config = ConfigDict(extra="forbid")

    usd_per_run: Decimal | None = Field(default=None, ge=0)
    usd_per_day: Decimal | None = Field(default=None, ge=0)
    tokens_per_run: int | None = Field(default=None, ge=0)
    tokens_per_day: int | None = Field(default=None, ge=0)
    seconds_per_session: float | None = Field(default=300.0, gt=0)


class PriceOptions(BaseModel):
    """The price of one model in US dollars for a million tokens. It replaces the price that is shipped, if any."""

    model_config = ConfigDict(extra="forbid")

    prompt_usd: Decimal = Field(ge=0)
    completion_usd: Decimal = Field(ge=0)
    cached_usd: Decimal | None = Field(default=None, ge=0)
    as_of: date | None = None
    source: str = ""


class PrivacyOptions(BaseModel):
    """What never reaches the store: secrets of the kinds `redact_kinds`, and what is said off the record.

    A turn that begins with a phrase of `off_record` starts what is off the record; a phrase of `on_record` ends it.
    With `erase` "auto" what people asked to be forgotten is erased `erase_wait_h` hours after it was hidden, unless
    somebody stops it in a review; with "ask" only `forget --asked` erases. Of one session at most `facts_per_session`
    facts are kept.
    """

    model_config = ConfigDict(extra="forbid")

    redact: bool = True
    redact_kinds: list[Secret] = list(Secret)
    off_record: list[str] = list(OFF)
    on_record: list[str] = list(ON)
    erase: Literal["ask", "auto"] = "ask"
    erase_wait_h: float = Field(default=WAIT / timedelta(hours=1), ge=0)
    facts_per_session: int = Field(default=FACTS_PER_SESSION, ge=1)

    @property
    def erases(self) -> bool:
        """Whether what people asked to be forgotten is erased without anybody's approval."""
        return self.erase == "auto"

    @property
    def erase_wait(self) -> timedelta:
        """How long something is hidden before it is erased without anybody's approval."""
        return timedelta(hours=self.erase_wait_h)

    def due_at(self, hidden_since: datetime) -> datetime | None:
        """Return when something hidden is erased without anybody's approval; None if it is not."""
        return hidden_since + self.erase_wait if self.erases else None

    def policy(self) -> Privacy:
        """Return the privacy policy that the store takes."""
        kinds = frozenset(self.redact_kinds if self.redact else ())
        return Privacy(kinds, Markers(tuple(self.off_record), tuple(self.on_record)), self.facts_per_session)


class LogOptions(BaseModel):
    """Which log records the command line writes to standard error, and in which format."""

    model_config = ConfigDict(extra="forbid")

    format: LogFormat = "text"
    level: LogLevel = "warning"


class ServerOptions(BaseModel):
    """How `afterword serve` listens, and what it allows.

    It answers for `host`, the names of this machine and `allowed_hosts`; "*" is any. Pages of `cors_origins` may call
    it. A key may make `requests_per_minute`; a body has at most `longest_body_bytes`, sent within `body_timeout_s`.
    """

    model_config = ConfigDict(extra="forbid")

    host: str = "127.0.0.1"
    port: int = Field(default=8321, ge=0, le=65535)
    allowed_hosts: list[str] = []
    cors_origins: list[str] = []
    requests_per_minute: int = Field(default=1200, ge=1)
    longest_body_bytes: int = Field(default=8_000_000, ge=1000)
    body_timeout_s: float = Field(default=30.0, gt=0)


def _checked_zone(name: str) -> str:
    read_zone(name)
    return name


class Settings(BaseSettings):
    """All settings. Environment variables such as `AFTERWORD_STORE__URL` override the profile.

    `zone` is the time zone (IANA name) of sources without offsets, unless their scope names one.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter=DELIMITER, extra="forbid")

    store: StoreOptions = StoreOptions()
    zone: Annotated[str, AfterValidator(_checked_zone)] = "UTC"
    extractor: Literal["rules", "model"] = "rules"
    concurrency: int = Field(default=8, ge=1)
    model: ModelOptions = ModelOptions()
    embedding: EmbeddingOptions = EmbeddingOptions()
    recall: RecallOptions = RecallOptions()
    findings: FindingsOptions = FindingsOptions()
    privacy: PrivacyOptions = PrivacyOptions()
    budget: BudgetOptions = BudgetOptions()
    prices: dict[str, PriceOptions] = {}
    retry: RetryOptions = RetryOptions()
    schedule: ScheduleOptions = ScheduleOptions()
    retention: RetentionOptions = RetentionOptions()
    log: LogOptions = LogOptions()
    server: ServerOptions = ServerOptions()
    webhooks: WebhookOptions = WebhookOptions()

    def store_privacy(self) -> Privacy:
        """Return the privacy policy that the store takes, with what is kept and told of agents and other people."""
        return replace(self.privacy.policy(), findings=self.findings.policy(), other_people=self.recall.other_people)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Let the environment win over the profile; there is no other source."""
        profile = profile_path()
        sources = (init_settings, env_settings)
        return (*sources, TomlConfigSettingsSource(settings_cls, profile)) if profile else sources


def profile_path() -> Path | None:
    """Return the profile in use: `AFTERWORD_PROFILE`, else `afterword.toml` in the working folder, else None."""
    named = os.environ.get(PROFILE_VARIABLE)
    if named:
        return Path(named)
    return PROFILE if PROFILE.is_file() else None


def modes_path() -> Path:
    """Return the file that remembers which mode each endpoint understands. It may be deleted: modes are tried again."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path("~/.cache").expanduser()) / "afterword" / "modes.json"


def read_profile() -> dict[str, Any]:
    """Return what the profile in use holds, nothing if there is none.

    Raises `SettingsInvalid` if it cannot be read.
    """
    profile = profile_path()
    if profile is None:
        return {}
    try:
        return tomllib.loads(profile.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SettingsInvalid(
            f"{PROFILE_VARIABLE} names {profile}, which does not exist; create it or unset the variable"
        ) from None
    except OSError as error:
        raise SettingsInvalid(f"{profile} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SettingsInvalid(f"{profile} is not valid TOML: {error}; correct the file") from None


def load() -> Settings:
    """Return the settings.

    Raises `SettingsInvalid`, which names the setting and never its value.
    """
    if unknown := unknown_name(Settings, os.environ, read_profile()):
        raise SettingsInvalid(unknown)
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        reason = f"the setting {where} cannot be used: {first['msg']} (profile: {profile_path() or 'none'})"
        raise SettingsInvalid(reason) from None
    except SettingsError as error:
        raise SettingsInvalid(f"an environment variable cannot be used: {error}") from None
