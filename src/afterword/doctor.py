"""Checks the settings, the installed packages, and the access to store and models, and says how to fix faults."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from sqlmodel import Session

from afterword import settings
from afterword.composition import model_client, open_embedder
from afterword.errors import AfterwordError, StoreError, StoreUnreachable
from afterword.extractors.errors import ExtractionError
from afterword.extractors.model.embeddings import EndpointEmbedder
from afterword.extractors.model.prices import shipped_prices
from afterword.recall.vectors import USABLE, Embedder, LocalEmbedder, packed_vector, usable_vectors
from afterword.setting_sections import EmbeddingOptions, ModelOptions
from afterword.settings import Settings, SettingsInvalid, profile_path
from afterword.store.database.engine import Store

PACKAGES = ("autogen-agentchat", "autogen-ext", "sqlmodel", "instructor", "openai", "apscheduler")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check: what was found, and how to fix it unless it is `ok`."""

    name: str
    ok: bool
    finding: str
    fix: str = ""


async def run_checks(*, probe: bool = False) -> list[CheckResult]:
    """Run all checks and return their results. Nothing is changed.

    Only with `probe` are requests sent: one to the model in every mode of requesting JSON, and one to the embedder. If
    the configured mode is "auto", the first mode that works is remembered.
    """
    checks = [_check_packages()]
    try:
        configured = settings.load()
    except SettingsInvalid as error:
        return [
            *checks,
            CheckResult("settings", False, str(error), "correct the profile or the variable that is named"),
        ]
    checks.append(CheckResult("settings", True, f"profile: {profile_path() or 'none, defaults and environment'}"))
    checks += [*await _check_store(configured), _check_redaction(configured), _check_extractor(configured)]
    checks.append(await _check_embedding(configured, probe=probe))
    if not probe:
        return checks
    if configured.extractor == "rules":
        return [*checks, CheckResult("model", True, "not asked: the offline rules are the extractor, and use no model")]
    return [*checks, await _check_model_modes(configured.model)]


def _check_packages() -> CheckResult:
    installed, missing = [], []
    for name in PACKAGES:
        try:
            installed.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    return CheckResult("packages", not missing, ", ".join(installed), f"pip install {' '.join(missing)}")


async def _check_store(configured: Settings) -> list[CheckResult]:
    try:
        store = Store(configured.store.url)
    except StoreError as error:
        return [CheckResult("store", False, str(error), "set AFTERWORD_STORE__URL")]
    try:
        is_new = store.is_missing()
    except OSError as error:
        finding = f"{store.shown_url} cannot be read: {error.strerror}"
        return [CheckResult("store", False, finding, "name another file with AFTERWORD_STORE__URL")]
    if is_new:
        return [CheckResult("store", True, f"{store.shown_url}: it does not exist yet; the first run creates it")]
    return await _check_existing_store(store)


async def _check_existing_store(store: Store) -> list[CheckResult]:
    try:
        async with store:
            await store.check(writing=True)
            damage = await store.read(_sqlite_damage) if store.path is not None else None
    except StoreError as error:
        is_down = store.dialect == "postgresql" and isinstance(error, StoreUnreachable)
        fix = "start the database for reading and writing" if is_down else "do what the result says"
        return [CheckResult("store", False, str(error), f"{fix}, or name another store with AFTERWORD_STORE__URL")]
    checks = [CheckResult("store", True, f"{store.shown_url} answers, its tables are up to date")]
    if store.path is None:
        return checks
    checks.append(CheckResult("integrity", damage is None, damage or "no damage", "put a backup in its place"))
    if os.name == "posix":
        mode = stat.S_IMODE(store.path.stat().st_mode)
        checks.append(CheckResult("privacy", not mode & 0o077, f"file mode {mode:04o}", f"chmod 600 {store.path}"))
    return checks


def _sqlite_damage(transaction: Session) -> str | None:
    """Return what is wrong with a SQLite file: its structure, or a row that refers to a missing one."""
    connection = transaction.connection()
    structure = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
    if structure != "ok":
        return f"the file is damaged: {structure}"
    orphan = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
    return None if orphan is None else f"a row of {orphan[0]} refers to a missing row of {orphan[2]}"


def _check_redaction(configured: Settings) -> CheckResult:
    kinds = ", ".join(sorted(configured.privacy.policy().kinds))
    return CheckResult(
        "redaction", True, f"masked before anything is stored: {kinds}" if kinds else "no secret is masked"
    )


def _check_extractor(configured: Settings) -> CheckResult:
    if configured.extractor == "rules":
        return CheckResult(
            "extractor", True, 'offline rules: English patterns, no model (set extractor = "model" to use one)'
        )
    model = configured.model
    endpoint = model.base_url or os.environ.get("OPENAI_BASE_URL") or "api.openai.com"
    has_key = model.used_key() is not None
    finding = f"model {model.name} at {endpoint}, key {_key_presence(has_key)}, mode {model.mode}"
    # An endpoint that a user runs often needs no key.
    return CheckResult("extractor", has_key or model.base_url is not None, finding, "set OPENAI_API_KEY")


async def _check_embedding(configured: Settings, *, probe: bool) -> CheckResult:
    """Check the embedder. With `probe`, request one vector from it."""
    options = configured.embedding
    if (missing := _missing_embedder(options)) is not None:
        return missing
    try:
        async with open_embedder(options) as embedder:
            finding, fix = _describe_embedder(configured, embedder)
            finding = f"auto: {finding}" if options.kind == "auto" else finding
            if not fix and probe and embedder is not None:
                finding, fix = f"{finding}, answers", await _probe_embedder(embedder)
    except AfterwordError as error:
        return CheckResult("embedding", False, f"{options.kind}: cannot be used", str(error))
    return CheckResult("embedding", not fix, finding, fix)


def _missing_embedder(options: EmbeddingOptions) -> CheckResult | None:
    """Return the result if no embedder can be opened, because none is configured or installed; else None."""
    if options.kind == "auto" and options.used_kind == "none":
        finding = "auto: none is installed, so recall ranks by words; pip install 'afterword[local]' to rank by meaning"
        return CheckResult("embedding", True, finding)
    if options.kind == "none":
        finding = 'none: recall ranks by words alone (kind = "auto", "local" or "endpoint" ranks by meaning, too)'
        return CheckResult("embedding", True, finding)
    if options.kind == "local" and find_spec("wordllama") is None:
        return CheckResult("embedding", False, "local: wordllama is not installed", "pip install 'afterword[local]'")
    return None


async def _probe_embedder(embedder: Embedder) -> str:
    """Request one vector. Return the requirement that it does not meet, or an empty text if it can be used."""
    vectors = await embedder.embed(["hello"])
    is_usable = usable_vectors({"hello": packed_vector(vectors[0])}, embedder.dimension)
    return "" if is_usable else f"the vector has to be {embedder.dimension} {USABLE}"


def _describe_embedder(configured: Settings, embedder: Embedder | None) -> tuple[str, str]:
    """Return which embedder is configured, and what must be fixed before it can be used."""
    if not isinstance(embedder, EndpointEmbedder):
        return f"{LocalEmbedder.model}, {LocalEmbedder.dimension} dimensions, on this machine", ""
    options, budget = configured.embedding, configured.budget
    has_key = options.used_key() is not None
    finding = f"{embedder.settings.place}, key {_key_presence(has_key)}, {embedder.dimension} dimensions"
    if not has_key and options.base_url is None:
        return finding, "set AFTERWORD_EMBEDDING__API_KEY or OPENAI_API_KEY"
    is_limited = budget.usd_per_run is not None or budget.usd_per_day is not None
    if is_limited and embedder.model not in {**configured.prices, **shipped_prices()}:
        return f"{finding}, no price known", f'the budget in dollars needs its price: [prices."{embedder.model}"]'
    return finding, ""


def _key_presence(has_key: bool) -> str:
    return "set" if has_key else "missing"


async def _check_model_modes(options: ModelOptions) -> CheckResult:
    try:
        async with model_client(options) as client:
            fault_by_mode = await client.probe()
    except ExtractionError as error:
        return CheckResult("model", False, "not asked", str(error))
    working_modes = [mode for mode, fault in fault_by_mode.items() if fault is None]
    finding = ", ".join(f"{mode} {'fails' if fault else 'works'}" for mode, fault in fault_by_mode.items())
    if not working_modes:
        return CheckResult("model", False, finding, str(next(iter(fault_by_mode.values()))))
    if options.mode == "auto":
        return CheckResult("model", True, f"{finding}; auto: {working_modes[0]} is used")
    fix = f'set mode = "{working_modes[0]}" or "auto"'
    return CheckResult("model", options.mode in working_modes, f"{finding}; {options.mode} is set", fix)
