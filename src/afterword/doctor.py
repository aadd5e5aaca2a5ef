"""What is configured, what can be reached, and how to mend the rest."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from afterword import settings
from afterword.errors import AfterwordError, StoreError
from afterword.recall.vectors import Embedder, LocalEmbedder
from afterword.settings import ModelOptions, Settings, SettingsInvalid, profile_path
from afterword.store.database.engine import Store

PACKAGES = ("autogen-agentchat", "autogen-ext", "sqlmodel", "instructor", "openai", "apscheduler")
LIBRARIES = {"local": ("numpy", "wordllama"), "endpoint": ("numpy",)}
"""What each kind of embedder needs beside afterword's own dependencies."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: what was found, and how to mend it where it is not `ok`."""

    name: str
    ok: bool
    found: str
    mend: str = ""


async def examine(*, probe: bool = False) -> list[Check]:
    """Return every check, the settings first. Nothing is changed; a model is asked only with `probe`, in every mode
    (an embedder for one vector), and with mode "auto" the first that works is remembered."""
    checks = [_packages()]
    try:
        configured = settings.load()
    except SettingsInvalid as error:
        return [*checks, Check("settings", False, str(error), "mend the profile or the variable that is named")]
    checks.append(Check("settings", True, f"profile: {profile_path() or 'none, defaults and environment'}"))
    checks += [*await _store(configured), _redaction(configured), _extractor(configured)]
    checks.append(await _embedding(configured, probe=probe))
    return [*checks, await _probed(configured.model)] if probe else checks


def _packages() -> Check:
    found, missing = [], []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    mend = f"pip install {' '.join(missing)}"
    return Check("packages", not missing, ", ".join(found), mend)


async def _store(configured: Settings) -> list[Check]:
    try:
        store = Store(configured.store.url)
    except StoreError as error:
        return [Check("store", False, str(error), "set AFTERWORD_STORE__URL")]
    if store.path is not None and not store.path.exists():
        return [Check("store", True, f"{store.shown_url}: not there yet, the first run makes it")]
    try:
        async with store:
            await store.check()
    except StoreError as error:
        mend = "start the database" if store.dialect == "postgresql" else "name another file with AFTERWORD_STORE__URL"
        return [Check("store", False, str(error), f"{mend}, or run `afterword migrate`")]
    checks = [Check("store", True, f"{store.shown_url} answers, its tables are up to date")]
    if store.path is not None and os.name == "posix":
        mode = stat.S_IMODE(store.path.stat().st_mode)
        private = not mode & 0o077
        checks.append(Check("privacy", private, f"file mode {mode:04o}", f"chmod 600 {store.path}"))
    return checks


def _redaction(configured: Settings) -> Check:
    kinds = sorted(configured.privacy.chosen().kinds)
    found = f"masked before anything is stored: {', '.join(kinds)}" if kinds else "stored as they are said"
    return Check("redaction", True, found)


def _extractor(configured: Settings) -> Check:
    if configured.extractor == "rules":
        return Check("extractor", True, 'offline rules: English patterns, no model (extractor = "model" asks one)')
    model = configured.model
    place = model.base_url or os.environ.get("OPENAI_BASE_URL") or "api.openai.com"
    has_key = bool(model.api_key or os.environ.get("OPENAI_API_KEY"))
    found = f"model {model.name} at {place}, key {'set' if has_key else 'missing'}, mode {model.mode}"
    return Check("extractor", has_key, found, "set OPENAI_API_KEY")


async def _embedding(configured: Settings, *, probe: bool) -> Check:
    """Say what makes vectors; with `probe` it makes one."""
    options = configured.embedding
    if options.kind == "none":
        return Check("embedding", True, 'none: recall goes by words (kind = "local" or "endpoint" adds meaning)')
    missing = [name for name in LIBRARIES[options.kind] if find_spec(name) is None]
    if missing:
        mend = "pip install 'afterword[local]'"
        return Check("embedding", False, f"{options.kind}: {' and '.join(missing)} not installed", mend)
    from afterword.embedders import embedding

    try:
        async with embedding(options) as made:
            found, mend = _embedder(configured, made)
            if not mend and probe and made is not None:
                await made.embed(["hello"])
                found += ", it answers"
    except AfterwordError as error:
        return Check("embedding", False, f"{options.kind}, without use", str(error))
    return Check("embedding", not mend, found, mend)


def _embedder(configured: Settings, made: Embedder | None) -> tuple[str, str]:
    """Return what makes vectors, and what is to be mended before it can be asked."""
    from afterword.extractors.model.embeddings import EndpointEmbedder
    from afterword.extractors.model.prices import shipped

    if not isinstance(made, EndpointEmbedder):
        return f"{LocalEmbedder.model}, {LocalEmbedder.dimension} numbers a text, on this machine", ""
    options, budget = configured.embedding, configured.budget
    has_key = bool(options.api_key or (options.base_url is None and os.environ.get("OPENAI_API_KEY")))
    found = f"{made.settings.place}, key {'set' if has_key else 'missing'}, {made.dimension} numbers a text"
    if not has_key and options.base_url is None:
        return found, "set AFTERWORD_EMBEDDING__API_KEY or OPENAI_API_KEY"
    is_limited = budget.usd_per_run is not None or budget.usd_per_day is not None
    if is_limited and made.model not in {**configured.prices, **shipped()}:
        return f"{found}, no price known", f'the budget in dollars needs its price: [prices."{made.model}"]'
    return found, ""


async def _probed(options: ModelOptions) -> Check:
    """Ask the model a tiny question in every mode."""
    from afterword.extractors.errors import ExtractionError
    from afterword.extractors.model.client import ModelClient
    from afterword.workers import model_settings

    try:
        async with ModelClient(model_settings(options)) as client:
            found = await client.probe()
    except ExtractionError as error:
        return Check("model", False, "not asked", str(error))
    works = [mode for mode, fault in found.items() if fault is None]
    told = ", ".join(f"{mode} {'works' if mode in works else 'fails'}" for mode in found)
    if not works:
        return Check("model", False, told, str(next(iter(found.values()))))
    chosen = options.mode if options.mode != "auto" else works[0]
    kept = f"auto: {chosen} is used" if options.mode == "auto" else f"{chosen} is set"
    return Check("model", chosen in works, f"{told}; {kept}", f'set mode = "{works[0]}" or "auto"')
