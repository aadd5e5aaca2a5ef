"""The settings. They are read from a TOML profile and from environment variables, which override the profile.

Only `composition`, `doctor`, `live_settings`, `client`, `evaluation` and the command line read settings. Other packages
take plain values.
"""

from __future__ import annotations

import inspect
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from afterword.errors import AfterwordError, StoreInvalid
from afterword.extractors.model.prices import Price
from afterword.privacy.policy import Privacy
from afterword.setting_names import (
    DELIMITER,
    PREFIX,
    PROFILE_VARIABLE,
    is_table,
    profile_keys,
    section_options,
    setting_fields,
    unknown_name_message,
    variable_of,
)
from afterword.setting_sections import (
    BudgetOptions,
    EmbeddingOptions,
    FindingsOptions,
    LogOptions,
    ModelOptions,
    PrivacyOptions,
    RecallOptions,
    RetentionOptions,
    RetryOptions,
    ScheduleOptions,
    ServerOptions,
    StoreOptions,
    WebhookOptions,
    Zone,
)
from afterword.store.database.urls import shown_url

PROFILE = Path("afterword.toml")

_TOP = """\
# The settings of afterword. A line that begins with # shows a default: remove the # to change it.
# Environment variables win over this file. AFTERWORD_STORE__URL, for example, is url of [store].
# `afterword config` shows what is in force.
"""


class SettingsInvalid(AfterwordError):
    """A setting in the profile or in an environment variable cannot be used. Correct the one that the message names."""

    is_usage = True


class Settings(BaseSettings):
    """All settings. Environment variables such as `AFTERWORD_STORE__URL` override the profile."""

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter=DELIMITER, extra="forbid"
    )

    store: StoreOptions = StoreOptions()
    zone: Zone = Field(
        default="UTC",
        description='the zone of saved times without an offset, such as "Europe/Vienna"; a memory may have its own',
    )
    extractor: Literal["rules", "model"] = Field(default="rules", description="offline rules, or a language model")
    concurrency: int = Field(default=8, ge=1, description="how many requests to a model are open at once")
    model: ModelOptions = ModelOptions()
    embedding: EmbeddingOptions = EmbeddingOptions()
    recall: RecallOptions = RecallOptions()
    findings: FindingsOptions = FindingsOptions()
    privacy: PrivacyOptions = PrivacyOptions()
    budget: BudgetOptions = BudgetOptions()
    prices: dict[str, Price] = Field(
        default={}, description="prices of models, which replace the shipped ones; a variable takes a JSON object"
    )
    retry: RetryOptions = RetryOptions()
    schedule: ScheduleOptions = ScheduleOptions()
    retention: RetentionOptions = RetentionOptions()
    log: LogOptions = LogOptions()
    server: ServerOptions = ServerOptions()
    webhooks: WebhookOptions = WebhookOptions()

    def privacy_of_store(self) -> Privacy:
        """Return the store's privacy policy, which also says what is kept of agents and told of other people."""
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
        """Return the sources in order of precedence: arguments, environment variables, profile."""
        profile = profile_path()
        # Without a variable of ours the environment is left out: pydantic would search it for each setting.
        has_variables = any(name.upper().startswith(PREFIX) for name in os.environ)
        sources = (init_settings, env_settings) if has_variables else (init_settings,)
        return (*sources, TomlConfigSettingsSource(settings_cls, profile)) if profile else sources


def profile_path() -> Path | None:
    """Return the profile in use: `AFTERWORD_PROFILE`, else `afterword.toml` in the working folder, else None."""
    # The case of a variable's name does not matter, as for all settings.
    named = next((value for name, value in os.environ.items() if name.upper() == PROFILE_VARIABLE), None)
    if named:
        return Path(named)
    return PROFILE if PROFILE.is_file() else None


def endpoint_modes_path() -> Path:
    """Return the path of the file that remembers which mode each endpoint supports. It may be deleted at any time."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path("~/.cache").expanduser()) / "afterword" / "modes.json"


def read_profile() -> dict[str, Any]:
    """Return the content of the profile in use, which is empty if there is none.

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
    """Read and return the settings.

    Raises `SettingsInvalid`. Its message names the setting and never its value.
    """
    profile = read_profile()
    fault = unknown_name_message(Settings, os.environ, profile)
    if fault:
        raise SettingsInvalid(fault)
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        fault = "it is a group of settings; set one of them" if first["type"] == "model_type" else first["msg"]
        raise SettingsInvalid(
            f"the setting {where} cannot be used: {fault} (profile: {profile_path() or 'none'})"
        ) from None
    except SettingsError as error:
        raise SettingsInvalid(
            f"an environment variable cannot be used: {error}; a setting of a group has a variable of its own, such as "
            "AFTERWORD_STORE__URL, and lists and tables are written as JSON"
        ) from None


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting with its value as text, and where the value comes from: a variable, the profile, or the default."""

    name: str
    value: str
    source: str
    variable: str


def settings_with_sources() -> list[Setting]:
    """Return every setting with its value and where that comes from, in the order of a profile. Secrets are not shown.

    Raises `SettingsInvalid`.
    """
    loaded, profile = load(), read_profile()
    path, in_profile = profile_path(), {*profile, *profile_keys(profile)}
    variables = {name.upper(): name for name in os.environ}
    return [
        Setting(
            name,
            _as_text(attrgetter(name)(loaded)),
            _variable_that_sets(name, variables) or (str(path) if name in in_profile else "default"),
            variable_of(name),
        )
        for name, _ in setting_fields(Settings)
    ]


def commented_profile() -> str:
    """Return a profile that shows every setting with its default, as comments."""
    lines, section = [_TOP], ""
    for name, field in setting_fields(Settings):
        head, _, key = name.rpartition(".")
        if head != section:
            lines += ["", *_section_comment(head), f"[{head}]"]
        section = head
        if is_table(field):
            lines += ["", f"# {name}: {field.description}"]
            lines += [f'# [{name}."gpt-4o-mini"]', '# prompt_usd = "0.15"', '# completion_usd = "0.60"', ""]
        else:
            default = list(map(str, field.default)) if isinstance(field.default, list) else field.default
            shown = f"{key} is not set" if default is None else f"{key} = {json.dumps(default, ensure_ascii=False)}"
            lines.append(f"# {shown}  # {field.description}")
    return "\n".join(lines) + "\n"


def _variable_that_sets(name: str, variables: Mapping[str, str]) -> str | None:
    """Return the environment variable that sets a setting: its own, that of its section, or one of a table's key."""
    own, (section, _, key) = variable_of(name), name.partition(".")
    if key and own not in variables:
        # The variable of a whole section sets only the options that its JSON object names.
        whole = variables.get(variable_of(section))
        return whole if whole is not None and key in json.loads(os.environ[whole]) else None
    names = (upper for upper in sorted(variables) if upper == own or upper.startswith(f"{own}{DELIMITER}"))
    return next((variables[upper] for upper in names), None)


def _as_text(value: Any) -> str:
    if isinstance(value, SecretStr):
        return "set, not shown"
    if isinstance(value, str) and "://" in value:
        return _without_password(value)
    if isinstance(value, dict | list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value is None else str(value)


def _without_password(address: str) -> str:
    try:
        return shown_url(address)
    except StoreInvalid:  # the address of a model's endpoint, or one that is wrong
        scheme, _, place = address.partition("://")
        return f"{scheme}://{place.partition('?')[0].rpartition('@')[2]}"


def _section_comment(section: str) -> list[str]:
    """Return the description of a section, as comment lines."""
    options = section_options(Settings.model_fields[section])
    described = inspect.cleandoc((options and options.__doc__) or "").replace("`", "")
    return [f"# {line}".rstrip() for line in described.splitlines()]
