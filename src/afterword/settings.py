"""The settings, read from a TOML profile and from the environment, which wins.

Only `composition`, `doctor`, `live_settings`, `client`, `evaluation` and the command line read settings. Other packages
take plain values.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from afterword.errors import AfterwordError
from afterword.facts.local_time import read_zone
from afterword.finding_options import FindingsOptions
from afterword.privacy.policy import Privacy
from afterword.setting_names import DELIMITER, PREFIX, PROFILE_VARIABLE, malformed_value, unknown_name
from afterword.setting_sections import (
    BudgetOptions,
    EmbeddingOptions,
    LogOptions,
    ModelOptions,
    PriceOptions,
    PrivacyOptions,
    RecallOptions,
    RetentionOptions,
    RetryOptions,
    ScheduleOptions,
    ServerOptions,
    StoreOptions,
)
from afterword.webhook_options import WebhookOptions

PROFILE = Path("afterword.toml")


class SettingsInvalid(AfterwordError):
    """The profile or an environment variable holds a value that cannot be used. Correct the one that is named."""

    is_usage = True


def _checked_zone(name: str) -> str:
    read_zone(name)
    return name


class Settings(BaseSettings):
    """All settings. Environment variables such as `AFTERWORD_STORE__URL` override the profile."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter=DELIMITER, extra="forbid")

    store: StoreOptions = StoreOptions()
    zone: Annotated[str, AfterValidator(_checked_zone)] = Field(
        default="UTC",
        description='the zone of saved times without an offset, such as "Europe/Vienna"; a memory may name its own',
    )
    extractor: Literal["rules", "model"] = Field(default="rules", description="offline rules, or a language model")
    concurrency: int = Field(default=8, ge=1, description="how many requests to a model are open at once")
    model: ModelOptions = ModelOptions()
    embedding: EmbeddingOptions = EmbeddingOptions()
    recall: RecallOptions = RecallOptions()
    findings: FindingsOptions = FindingsOptions()
    privacy: PrivacyOptions = PrivacyOptions()
    budget: BudgetOptions = BudgetOptions()
    prices: dict[str, PriceOptions] = Field(
        default={}, description="the prices of models, which replace the prices that are shipped; a variable holds JSON"
    )
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
    profile = read_profile()
    fault = unknown_name(Settings, os.environ, profile) or malformed_value(Settings, os.environ, profile)
    if fault:
        raise SettingsInvalid(fault)
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        reason = f"the setting {where} cannot be used: {first['msg']} (profile: {profile_path() or 'none'})"
        raise SettingsInvalid(reason) from None
    except SettingsError as error:
        raise SettingsInvalid(f"an environment variable cannot be used: {error}") from None
