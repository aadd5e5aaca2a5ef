"""What a dumped FactMemory says: where its store is, never a secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from autogen_core.memory import Memory

from afterword.agents.memory import FactMemory
from afterword.agents.memory_settings import FromEnvironment
from afterword.errors import StoreError
from afterword.store.database.engine import Store
from kept import text, texts


async def test_a_dump_loads_back_and_finds_the_same(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'facts.db'}"
    memory = FactMemory(scope="acme/project/apollo", store=url, budget_tokens=321, timeout_s=1.5)
    await memory.add(text("Apollo ships in May."))
    dumped = json.loads(memory.dump_component().model_dump_json())
    assert dumped["provider"] == "afterword.FactMemory"
    assert dumped["config"] == {"scope": "acme/project/apollo", "budget_tokens": 321, "timeout_s": 1.5, "store": url}
    loaded = Memory.load_component(dumped)
    assert isinstance(loaded, FactMemory)
    assert await texts(loaded) == ["Apollo ships in May."]
    await memory.close()
    await loaded.close()


def test_without_a_store_the_dump_names_none_and_the_environment_decides() -> None:
    assert "store" not in FactMemory(user="lena").dump_component().config


def test_a_named_variable_is_dumped_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FACTS_URL", "postgresql://me:hunter2@db/facts")
    memory = FactMemory(user="lena", store=FromEnvironment(env="FACTS_URL"))
    dumped = memory.dump_component()
    assert dumped.config["store"] == {"env": "FACTS_URL"}
    assert Memory.load_component(dumped).dump_component() == dumped


async def test_an_unset_variable_is_named_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FACTS_URL", raising=False)
    with pytest.raises(StoreError, match="FACTS_URL"):
        await FactMemory(user="lena", store=FromEnvironment(env="FACTS_URL")).add(text("tea"))


@pytest.mark.parametrize(
    "url", ["postgresql://me:hunter2@db/facts", "postgresql://db/facts?user=me&password=hunter2", "sqlite:///facts.db"]
)
@pytest.mark.parametrize("is_opened", [True, False])
def test_no_secret_is_ever_dumped(url: str, is_opened: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for environment in (None, url):
        if environment:
            monkeypatch.setenv("AFTERWORD_STORE__URL", environment)
        else:
            monkeypatch.delenv("AFTERWORD_STORE__URL", raising=False)
        memory = FactMemory(user="lena", store=Store(url) if is_opened else url)
        assert "hunter2" not in memory.dump_component().model_dump_json()
        assert "hunter2" not in repr(memory.dump_component())


@pytest.mark.parametrize("url", ["postgresql://me:hunter2@db/facts", "postgresql://db/facts?password=hunter2"])
def test_a_dump_without_its_password_says_what_to_set(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AFTERWORD_STORE__URL", raising=False)
    dumped = FactMemory(user="lena", store=url).dump_component()
    with pytest.raises(StoreError, match="AFTERWORD_STORE__URL"):
        Memory.load_component(dumped)
    monkeypatch.setenv("AFTERWORD_STORE__URL", url)
    loaded = Memory.load_component(dumped)
    assert loaded.dump_component().config["store"] == {"env": "AFTERWORD_STORE__URL"}


def test_a_url_without_secrets_is_dumped_as_it_is() -> None:
    dumped = FactMemory(user="lena", store="postgresql://db/facts").dump_component()
    assert dumped.config["store"] == "postgresql://db/facts"
