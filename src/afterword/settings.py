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

from afterword.store.engine import DEFAULT_URL
from afterword.store.errors import AfterwordError
from afterword.store.off_record import OFF, ON, Markers
from afterword.store.privacy import Privacy
from afterword.store.secret_patterns import Secret

PROFILE = Path("afterword.toml")


class SettingsInvalid(AfterwordError):
    """The profile or an environment variable holds something that cannot be used."""

    is_usage = True


class StoreOptions(BaseModel):
    """Where facts live."""

    model_config = ConfigDict(extra="forbid")

    url: str = DEFAULT_URL


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
    """What is kept out of the store: secrets of these kinds, and what follows these phrases at a turn's beginning."""

    model_config = ConfigDict(extra="forbid")

    redact: bool = True
    redact_kinds: list[Secret] = list(Secret)
    off_record: list[str] = list(OFF)
    on_record: list[str] = list(ON)

    def chosen(self) -> Privacy:
        """Return them as the store takes them."""
        kinds = frozenset(self.redact_kinds if self.redact else ())
        return Privacy(kinds, Markers(tuple(self.off_record), tuple(self.on_record)))


class Settings(BaseSettings):
    """Everything that can be configured. `AFTERWORD_STORE__URL` and the like override the profile."""

    model_config = SettingsConfigDict(env_prefix="AFTERWORD_", env_nested_delimiter="__", extra="forbid")

    store: StoreOptions = StoreOptions()
    extractor: Literal["rules", "model"] = "rules"
    model: ModelOptions = ModelOptions()
    privacy: PrivacyOptions = PrivacyOptions()
    budget: BudgetOptions = BudgetOptions()
    prices: dict[str, PriceOptions] = {}

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
