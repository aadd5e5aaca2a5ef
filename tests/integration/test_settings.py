"""The settings: every name is checked, the sources are shown, and secrets are not."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

from afterword.extractors.model.client import ModelSettings
from afterword.extractors.testing import ScriptedEndpoint, facts_reply
from afterword.setting_names import setting_fields, variable_of
from afterword.setting_sections import ModelOptions
from afterword.settings import Settings, commented_profile
from commands import Commands
from saved import write_manifest

NAMES = [name for name, _ in setting_fields(Settings)]


@pytest.mark.parametrize(
    ("variable", "nearest"),
    [
        ("AFTERWORD_STORE_URL", "AFTERWORD_STORE__URL"),
        ("AFTERWORD_EXTRACTR", "AFTERWORD_EXTRACTOR"),
        ("afterword_model_name", "AFTERWORD_MODEL__NAME"),
        ("AFTERWORD_PRIVACY__REDCAT", "AFTERWORD_PRIVACY__REDACT"),
    ],
)
def test_a_variable_that_is_no_setting_is_an_error(afterword: Commands, variable: str, nearest: str) -> None:
    printed = afterword.within({variable: "sqlite:///other.db"}, "facts", "--user", "mira", expected=2)
    assert variable in printed
    assert f"did you mean {nearest}?" in printed


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("AFTERWORD_LOG", "debug", 'for field "log"'),
        ("AFTERWORD_STORE", "sqlite:///other.db", 'for field "store"'),
        ("AFTERWORD_SERVER", "8000", "the setting server cannot be used: it is a group of settings"),
        ("AFTERWORD_SERVER__ALLOWED_HOSTS", "example.org", "lists and tables are written as JSON"),
        ("AFTERWORD_PRICES", "3", "the setting prices cannot be used: Input should be a valid dictionary"),
    ],
)
def test_a_plain_value_of_a_group_or_list_is_an_error_that_names_the_setting(
    afterword: Commands, variable: str, value: str, said: str
) -> None:
    printed = afterword.within({variable: value}, "facts", "--user", "mira", expected=2)
    assert said in printed


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ("[store]\nurll = 'x'\n", "store.urll in the profile is no setting; did you mean store.url?"),
        ("extracter = 'rules'\n", "extracter in the profile is no setting; did you mean extractor?"),
        ("[modell]\nname = 'x'\n", "modell.name in the profile is no setting; did you mean model.name?"),
        ("zzz = 1\n", "zzz in the profile is no setting; `afterword config` lists the settings"),
        ("[store\n", "is not valid TOML"),
        ("log = 'error'\n", "the setting log cannot be used: it is a group of settings; set one of them"),
    ],
)
def test_a_key_of_the_profile_that_is_no_setting_is_an_error(afterword: Commands, profile: str, said: str) -> None:
    (afterword.folder / "afterword.toml").write_text(profile)
    assert said in afterword("config", expected=2)


def test_every_setting_is_shown_with_its_source(afterword: Commands) -> None:
    (afterword.folder / "afterword.toml").write_text("concurrency = 3\n[recall]\nbudget_tokens = 700\n")
    environment = {
        "AFTERWORD_RECALL__BUDGET_TOKENS": "900",
        "AFTERWORD_MODEL__API_KEY": "sk-hidden",
        "AFTERWORD_MODEL__BASE_URL": "https://me:hidden@example.org/v1?token=hidden",
        "AFTERWORD_STORE__URL": "postgresql://me:hidden@localhost/facts?sslpassword=hidden",
        "AFTERWORD_PRICES": '{"m": {"prompt_usd": "1", "completion_usd": "2"}}',
    }
    printed = afterword.within(environment, "config", "--json")
    shown = {setting["name"]: setting for setting in json.loads(printed)}
    assert list(shown) == NAMES
    assert "hidden" not in printed
    assert (shown["concurrency"]["value"], shown["concurrency"]["source"]) == ("3", "afterword.toml")
    budget = shown["recall.budget_tokens"]
    assert (budget["value"], budget["source"]) == ("900", "AFTERWORD_RECALL__BUDGET_TOKENS")
    assert (shown["prices"]["value"], shown["prices"]["source"]) == ("m", "AFTERWORD_PRICES")
    assert shown["model.name"]["source"] == "default"
    assert shown["model.base_url"]["value"] == "https://example.org/v1"
    assert "recall.budget_tokens" in afterword.within(environment, "config")


def test_the_variable_of_a_section_is_the_source_of_what_it_names_alone(afterword: Commands) -> None:
    environment = {
        "AFTERWORD_STORE": '{"pool_size": 7}',
        "AFTERWORD_STORE__URL": "sqlite:///other.db",
    }
    shown = {setting["name"]: setting for setting in json.loads(afterword.within(environment, "config", "--json"))}
    assert (shown["store.pool_size"]["value"], shown["store.pool_size"]["source"]) == ("7", "AFTERWORD_STORE")
    assert (shown["store.url"]["value"], shown["store.url"]["source"]) == ("sqlite:///other.db", "AFTERWORD_STORE__URL")
    assert {shown[name]["source"] for name in NAMES if name.startswith("store.")} == {
        "AFTERWORD_STORE",
        "AFTERWORD_STORE__URL",
        "default",
    }


def test_the_variable_of_the_profile_may_be_written_small(afterword: Commands) -> None:
    (afterword.folder / "mine.toml").write_text("concurrency = 3\n")
    shown = json.loads(afterword.within({"afterword_profile": "mine.toml"}, "config", "--json"))
    assert {setting["value"] for setting in shown if setting["name"] == "concurrency"} == {"3"}
    assert "does not exist" in afterword.within({"afterword_profile": "none.toml"}, "config", expected=2)


@pytest.mark.parametrize("days", ["inf", "nan", "3000000", "0", "-1"])
@pytest.mark.parametrize("setting", ["FINDINGS__DAYS", "RETENTION__SESSION_DAYS", "RETENTION__FACT_DAYS"])
def test_days_that_no_calendar_has_are_refused(afterword: Commands, setting: str, days: str) -> None:
    printed = afterword.within({f"AFTERWORD_{setting}": days}, "config", expected=2)
    assert setting.lower().replace("__", ".") in printed.lower().replace("__", ".")


@pytest.mark.parametrize(
    ("setting", "value"),
    [("pending", "bogus cron"), ("webhooks", "-5"), ("retention", "nan"), ("timezone", "Mars/X")],
)
def test_a_schedule_that_could_not_run_is_refused_by_the_doctor_and_by_every_command(
    afterword: Commands, setting: str, value: str
) -> None:
    variable = {f"AFTERWORD_SCHEDULE__{setting.upper()}": value}
    assert f"schedule.{setting}" in afterword("doctor", expected=1, **variable)
    assert f"schedule.{setting}" in afterword("config", expected=2, **variable)


def test_a_due_time_of_the_schedule_is_shown_as_it_was_written(afterword: Commands) -> None:
    variables = {"AFTERWORD_SCHEDULE__PENDING": "30 3 * * *", "AFTERWORD_SCHEDULE__TIMEZONE": "Europe/Vienna"}
    assert "30 3 * * *" in afterword.within(variables, "config")


def test_the_written_profile_changes_nothing_and_names_every_setting(afterword: Commands) -> None:
    before = json.loads(afterword("config", "--json"))
    assert "afterword.toml written" in afterword("init")
    after = json.loads(afterword("config", "--json"))
    assert after == before
    text = (afterword.folder / "afterword.toml").read_text(encoding="utf-8")
    assert text == commented_profile()
    for name in NAMES:
        assert f"# {name.rpartition('.')[2]} " in text or f"# [{name}." in text, name
    assert "exists already" in afterword("init", expected=2)
    assert "cannot be written" in afterword("init", "none/there.toml", expected=2)


def test_a_default_of_the_written_profile_can_be_put_in_force(afterword: Commands) -> None:
    before = json.loads(afterword("config", "--json"))
    lines = commented_profile().splitlines()
    active = [line.removeprefix("# ") if line.startswith("# ") and _is_setting(line) else line for line in lines]
    (afterword.folder / "afterword.toml").write_text("\n".join(active))
    after = json.loads(afterword("config", "--json"))
    assert [setting["value"] for setting in after] == [setting["value"] for setting in before]
    assert sum(setting["source"] == "afterword.toml" for setting in after) >= 40


def _is_setting(line: str) -> bool:
    key, equals, _ = line.removeprefix("# ").partition(" = ")
    return bool(equals) and any(name.rpartition(".")[2] == key for name in NAMES)


def test_a_model_client_has_the_defaults_of_the_settings() -> None:
    """Whoever makes a client in a program gets what the same settings give on the command line."""
    configured = ModelOptions()
    shared = {field.name: field.default for field in fields(ModelSettings) if field.name in ModelOptions.model_fields}
    assert shared.keys() >= {"base_url", "api_key", "timeout_s", "max_retries", "mode", "max_completion_tokens"}
    assert shared == {name: getattr(configured, name) for name in shared}


def test_every_variable_is_a_setting() -> None:
    assert variable_of("store.url") == "AFTERWORD_STORE__URL"
    assert len(set(map(variable_of, NAMES))) == len(NAMES)


def test_the_key_of_the_environment_is_sent_where_the_doctor_says_so(afterword: Commands, tmp_path: Path) -> None:
    write_manifest(tmp_path / "saved", ("one", "2026-01-05T10:00:00Z", "I live in Graz."))
    with ScriptedEndpoint([facts_reply()]) as endpoint:
        environment = {
            "AFTERWORD_EXTRACTOR": "model",
            "AFTERWORD_MODEL__BASE_URL": endpoint.base_url,
            "AFTERWORD_MODEL__MODE": "json_schema",
            "OPENAI_API_KEY": "of-the-environment",
        }
        (check,) = [
            each
            for each in json.loads(afterword.within(environment, "doctor", "--json"))
            if each["check"] == "extractor"
        ]
        afterword.within(environment, "run", "saved")
    assert "key set" in check["found"]
    assert endpoint.authorizations == ["Bearer of-the-environment"]


def test_an_endpoint_of_ones_own_needs_no_key(afterword: Commands) -> None:
    environment = {"AFTERWORD_EXTRACTOR": "model", "AFTERWORD_MODEL__BASE_URL": "http://127.0.0.1:9/v1"}
    checks = {each["check"]: each for each in json.loads(afterword.within(environment, "doctor", "--json"))}
    assert checks["extractor"]["ok"]
    assert "key missing" in checks["extractor"]["found"]


def test_a_store_whose_name_is_too_long_is_a_finding_of_the_doctor(afterword: Commands) -> None:
    environment = {"AFTERWORD_STORE__URL": f"sqlite:///{'a' * 300}.db"}
    checks = {each["check"]: each for each in json.loads(afterword.within(environment, "doctor", "--json", expected=1))}
    assert not checks["store"]["ok"]
    assert "File name too long" in checks["store"]["found"]
