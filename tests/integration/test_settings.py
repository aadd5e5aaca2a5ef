"""The settings: every name is checked, the sources are shown, and secrets are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from afterword.extractors.testing import ScriptedEndpoint, facts_reply
from afterword.setting_names import malformed_value, section_options, setting_fields, variable_of
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
    ("variable", "value", "nearest"),
    [
        ("AFTERWORD_LOG", "error", "did you mean AFTERWORD_LOG__LEVEL?"),
        ("afterword_log", "json", "did you mean AFTERWORD_LOG__FORMAT?"),
        ("AFTERWORD_STORE", "sqlite:///other.db", "did you mean AFTERWORD_STORE__URL?"),
        ("AFTERWORD_MODEL", "gpt-4o", "did you mean AFTERWORD_MODEL__NAME?"),
        ("AFTERWORD_SERVER", "8000", "did you mean AFTERWORD_SERVER__PORT?"),
        ("AFTERWORD_SERVER__ALLOWED_HOSTS", "example.org", "takes a JSON list"),
        ("AFTERWORD_PRICES", "3", "takes a JSON object"),
    ],
)
def test_a_plain_value_of_a_group_or_list_is_an_error_that_names_the_setting(
    afterword: Commands, variable: str, value: str, nearest: str
) -> None:
    printed = afterword.within({variable: value}, "facts", "--user", "mira", expected=2)
    assert f"the variable {variable} takes a JSON" in printed
    assert nearest in printed


def test_every_group_names_one_of_its_settings() -> None:
    for name, field in Settings.model_fields.items():
        if section_options(field):
            said = malformed_value(Settings, {variable_of(name): "a plain value"}, {})
            assert f"did you mean {variable_of(name)}__" in (said or "")
            assert malformed_value(Settings, {variable_of(name): "{}"}, {name: {}}) is None


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ("[store]\nurll = 'x'\n", "store.urll in the profile is no setting; did you mean store.url?"),
        ("extracter = 'rules'\n", "extracter in the profile is no setting; did you mean extractor?"),
        ("[modell]\nname = 'x'\n", "modell.name in the profile is no setting; did you mean model.name?"),
        ("zzz = 1\n", "zzz in the profile is no setting; `afterword config` lists the settings"),
        ("[store\n", "is not valid TOML"),
        ("log = 'error'\n", "log in the profile is a group of settings: write level below a line [log]"),
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
