"""What is configured, and where it comes from: a TOML profile, and the environment, which wins.

Only the composition roots (the command line, `doctor`) read settings; packages take plain values.
"""

from __future__ import annotations

import os
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from afterword.errors import AfterwordError
from afterword.privacy.off_record import OFF, ON, Markers
from afterword.privacy.policy import Privacy
from afterword.privacy.secret_patterns import Secret
from afterword.store.database.engine import DEFAULT_URL, Connections
from afterword.store.retry_schedule import Retries

PROFILE = Path("afterword.toml")

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]


class SettingsInvalid(AfterwordError):
    """The profile or an environment variable holds something that cannot be used."""

    is_usage = True


class StoreOptions(BaseModel):
    """Where facts live. The other two are PostgreSQL's: connections of a process, and how long a statement may take."""

    model_config = ConfigDict(extra="forbid")

    url: str = DEFAULT_URL
    pool_size: int = Field(default=10, ge=1)
    statement_timeout_s: float = Field(default=60.0, gt=0)

    def connections(self) -> Connections:
        """Return them as the store takes them."""
        return Connections(self.pool_size, self.statement_timeout_s)


class RetryOptions(BaseModel):
    """How often a session is tried before it is set aside, and the pauses between; each is four times the last."""

    model_config = ConfigDict(extra="forbid")

    tries: int = Field(default=6, ge=1)
    first_pause_s: float = Field(default=60.0, ge=0)
    longest_pause_s: float = Field(default=6 * 3600.0, ge=0)

    def chosen(self) -> Retries:
        """Return them as the store takes them."""
        return Retries(self.tries, self.first_pause_s, self.longest_pause_s)


class ScheduleOptions(BaseModel):
    """When `afterword schedule` does what: seconds, or five cron fields in `timezone`.

    A scope is consolidated once it has `new_sessions`, is quiet for `idle_s`, and was last so `apart_s` ago.
    """

    model_config = ConfigDict(extra="forbid")

    pending: float | str = 60
    retries: float | str = 60
    consolidation: float | str = 3600
    embedding: float | str = 60
    timezone: str = "UTC"
    jitter_s: float = Field(default=5.0, ge=0)
    lease_s: float = Field(default=120.0, gt=0)
    new_sessions: int = Field(default=5, ge=1)
    idle_s: float = Field(default=600.0, ge=0)
    apart_s: float = Field(default=24 * 3600.0, ge=0)
    defer: bool = False


class ModelOptions(BaseModel):
    """Which model extracts. Without a key of its own, `OPENAI_API_KEY` is used; `base_url` likewise.

    With `mode` "auto" the endpoint is tried once, and what it understands is kept in `modes_path()`.
    """

    model_config = ConfigDict(extra="forbid")

    name: str = "gpt-4o-mini"
    base_url: str | None = None
    api_key: SecretStr | None = None
    mode: Literal["auto", "json_schema", "tools", "json"] = "auto"
    timeout_s: float = Field(default=60.0, gt=0)
    max_retries: int = Field(default=3, ge=0)
    max_completion_tokens: int | None = Field(default=None, gt=0)
    statement_language: str | None = Field(default=None, pattern=r"^[^\W\d_][\w -]{1,39}$")


class EmbeddingOptions(BaseModel):
    """What makes the vectors by which recall goes beside words: nothing, this machine, or an endpoint.

    The others are those of an endpoint. With `shorten` it is asked for `dimension` numbers, which not every model can;
    `batch` is how many texts are sent at once. Without a key of its own, `OPENAI_API_KEY` is used; `base_url` likewise.
    """

    model_config = ConfigDict(extra="forbid")

    kind: Literal["none", "local", "endpoint"] = "none"
    model: str = "text-embedding-3-small"
    base_url: str | None = None
    api_key: SecretStr | None = None
    dimension: int = Field(default=1536, ge=1)
    shorten: bool = False
    timeout_s: float = Field(default=30.0, gt=0)
    batch: int = Field(default=128, ge=1, le=2048)


class BudgetOptions(BaseModel):
    """What models may cost: one run, and one day (UTC) over all processes. Nothing is asked that could pass it."""

    model_config = ConfigDict(extra="forbid")

    usd_per_run: Decimal | None = Field(default=None, ge=0)
    usd_per_day: Decimal | None = Field(default=None, ge=0)
    tokens_per_run: int | None = Field(default=None, ge=0)
    tokens_per_day: int | None = Field(default=None, ge=0)


class PriceOptions(BaseModel):
    """US dollars for a million tokens of one model; in place of the row that comes along, if any."""

    model_config = ConfigDict(extra="forbid")

    prompt_usd: Decimal = Field(ge=0)
    completion_usd: Decimal = Field(ge=0)
    cached_usd: Decimal | None = Field(default=None, ge=0)
    as_of: date | None = None
    source: str = ""


class PrivacyOptions(BaseModel):
    """What is kept out of the store: secrets of these kinds, and what follows these phrases at a turn's beginning.

    `erase` says whether what people ask to be forgotten is erased by each run ("auto"), or by `forget --asked` alone.
    """

    model_config = ConfigDict(extra="forbid")

    redact: bool = True
    redact_kinds: list[Secret] = list(Secret)
    off_record: list[str] = list(OFF)
    on_record: list[str] = list(ON)
    erase: Literal["ask", "auto"] = "ask"

    @property
    def erases(self) -> bool:
        """Whether what people ask to be forgotten is erased without anybody's leave."""
        return self.erase == "auto"

    def chosen(self) -> Privacy:
        """Return them as the store takes them."""
        kinds = frozenset(self.redact_kinds if self.redact else ())
        return Privacy(kinds, Markers(tuple(self.off_record), tuple(self.on_record)))


class LogOptions(BaseModel):
    """What the command line writes to standard error of what it logs, and how."""

    model_config = ConfigDict(extra="forbid")

    format: LogFormat = "text"
    level: LogLevel = "warning"


class Settings(BaseSettings):
    """Everything that can be configured. `AFTERWORD_STORE__URL` and the like override the profile."""

    model_config = SettingsConfigDict(env_prefix="AFTERWORD_", env_nested_delimiter="__", extra="forbid")

    store: StoreOptions = StoreOptions()
    extractor: Literal["rules", "model"] = "rules"
    concurrency: int = Field(default=8, ge=1)
    model: ModelOptions = ModelOptions()
    embedding: EmbeddingOptions = EmbeddingOptions()
    privacy: PrivacyOptions = PrivacyOptions()
    budget: BudgetOptions = BudgetOptions()
    prices: dict[str, PriceOptions] = {}
    retry: RetryOptions = RetryOptions()
    schedule: ScheduleOptions = ScheduleOptions()
    log: LogOptions = LogOptions()

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
    """Return the profile in use: `AFTERWORD_PROFILE`, else `afterword.toml` of the working folder, else None."""
    named = os.environ.get("AFTERWORD_PROFILE")
    if named:
        return Path(named)
    return PROFILE if PROFILE.is_file() else None


def modes_path() -> Path:
    """Return the file that remembers which mode an endpoint understands; without it, it is only tried again."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path("~/.cache").expanduser()) / "afterword" / "modes.json"


def load() -> Settings:
    """Return the settings. Raises `SettingsInvalid`, naming the place and never the value."""
    profile = profile_path()
    if profile is not None and not profile.is_file():
        raise SettingsInvalid(f"AFTERWORD_PROFILE names {profile}, which does not exist")
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        reason = f"the setting {where} cannot be used: {first['msg']} (profile: {profile or 'none'})"
        raise SettingsInvalid(reason) from None
    except ValueError as error:
        raise SettingsInvalid(f"{profile} is no TOML: {error}") from None
