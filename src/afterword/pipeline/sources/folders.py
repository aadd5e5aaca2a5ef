"""Finding saved sessions: by a manifest, in folders `<folder>/<user>/<session>.json`, or in a database.

The sessions of a folder are its `.json` files, and its `.jsonl` files, which are histories of Agent Framework.
"""

from __future__ import annotations

import os
import re
from base64 import b32decode
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationError

from afterword.extractors.errors import ReadError
from afterword.extractors.readers import is_session_without_messages, parse_state, read_bytes
from afterword.facts.local_time import at_speaker_offset
from afterword.facts.scopes import Scope
from afterword.pipeline.errors import SourceInvalid
from afterword.pipeline.intake import Saved
from afterword.pipeline.sources.databases import is_sqlite_database, sessions_in_database

MANIFEST = "manifest.json"
HISTORY = ".jsonl"
ENCODED = "~session-"
"""The beginning of a file name in which Agent Framework has encoded the session id in base32."""


def _checked_instant(at: datetime) -> datetime:
    try:
        at_speaker_offset(at, UTC)
    except OverflowError:
        raise ValueError("this is no instant: UTC has no such day") from None
    return at


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class ManifestEntry(BaseModel):
    """One session of a manifest. `path` is relative to the folder of the manifest.

    `scope`, such as "default/project/apollo", may replace `user_id`. A time without an offset is a local time of the
    scope. A session that is `off_the_record` is neither read nor stored.
    """

    session_id: str = Field(min_length=1)
    path: Path
    user_id: str | None = None
    scope: str | None = None
    humans: list[str] = []
    started_at: Annotated[datetime, AfterValidator(_checked_instant)] | None = None
    ended_at: Annotated[datetime, AfterValidator(_checked_instant)] | None = None
    off_the_record: bool = False


def find_sessions(
    paths: Sequence[Path],
    *,
    scope: Scope | None = None,
    manifest: Path | None = None,
    trust_manifest: bool = False,
) -> list[Saved]:
    """Return the sessions at these paths, ordered by time as far as it is known.

    If a folder or a subfolder has a `manifest.json`, its sessions are those that the manifest lists. Any other folder
    is read as `<folder>/<user>/<session>.json`, or with a `scope` as `<folder>/<session>.json`. A single file needs
    `scope`. A SQLite file may be a database of AutoGen Studio or of the OpenAI Agents SDK, or a log of AutoGen v0.2;
    the last two need `scope`. `scope` overrides the users of a manifest or a database.

    Unless the caller trusts it (`trust_manifest`), a manifest may name only files in and below its own folder, without
    symbolic links that lead out of it, and with `scope` only that scope. If subfolders stand for users, a manifest in
    one of them may name that user only. A symbolic link is not accepted as the folder of a user, nor as a session if it
    leads out of its folder.

    Raises `SourceInvalid` if a path is missing, a manifest is broken or names something that it may not name, no scope
    is known, or two files are the same session.
    """
    located: list[tuple[Path, Saved]] = []
    if manifest is not None:
        located += [(saved.path or manifest, saved) for saved in _sessions_in_manifest(manifest, scope, trust_manifest)]
    for path in paths:
        located += [(saved.path or path, saved) for saved in _sessions_at(path, scope, trust_manifest)]
    _check_no_duplicates(located)
    sessions = [saved for _, saved in located]
    if not sessions:
        raise SourceInvalid(f"no session at {', '.join(map(str, paths)) or manifest}; see `afterword run --help`")
    # Local times count as UTC here: the zone of a scope is known only when its session is read.
    return sorted(
        sessions, key=lambda saved: at_speaker_offset(saved.started_at or saved.file_time or datetime.max, UTC)
    )


def _check_no_duplicates(located: Sequence[tuple[Path, Saved]]) -> None:
    """Raise `SourceInvalid` if two files are the same session, because one would silently replace the other."""
    paths: dict[tuple[Scope, str], Path] = {}
    for path, saved in located:
        first = paths.setdefault((saved.scope, saved.session_id), path)
        if first.resolve() == path.resolve():
            continue
        raise SourceInvalid(
            f"{first} and {path} are both session {saved.session_id!r} of {saved.scope}; rename one of them, "
            "or process them one after the other if one is the continuation of the other"
        )


def _sessions_at(path: Path, scope: Scope | None, trust_manifest: bool) -> Iterable[Saved]:
    if path.is_file():
        if path.name == MANIFEST:
            return _sessions_in_manifest(path, scope, trust_manifest)
        if is_sqlite_database(path):
            return sessions_in_database(path, scope)
        if scope is None:
            raise SourceInvalid(f"{path} is a single session: say whose with --user or --scope")
        return [_session_of_file(path, scope)]
    if not path.is_dir():
        raise SourceInvalid(f"{path} does not exist; give a saved state, a folder of them, or a manifest")
    if (path / MANIFEST).is_file():
        return _sessions_in_manifest(path / MANIFEST, scope, trust_manifest)
    return list(_sessions_in_folder(path, scope, trust_manifest))


def _sessions_in_folder(folder: Path, scope: Scope | None, trust_manifest: bool) -> Iterator[Saved]:
    """Yield the sessions of a folder and of each subfolder. Hidden files are ignored."""
    loose = _session_files(folder)
    if scope is not None:
        yield from (_session_of_file(path, scope, folder) for path in loose)
    subfolders = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    are_users = scope is None and any(
        not (below / MANIFEST).is_file() and _session_files(below) for below in subfolders
    )
    for below in subfolders:
        yield from _sessions_in_subfolder(below, scope, trust_manifest, is_user=are_users)
    if scope is None and loose:
        raise SourceInvalid(
            f"{loose[0]} lies in no user's folder: say whose with --user, or use {folder}/<user>/<session>.json"
        )


def _sessions_in_subfolder(
    folder: Path, scope: Scope | None, trust_manifest: bool, *, is_user: bool
) -> Iterator[Saved]:
    """Yield the sessions that the manifest of a subfolder lists, or without one all its files, as sessions of a user.

    Without a manifest nothing is yielded if a `scope` is given. With `is_user` the subfolder stands for a user, whom
    alone its manifest may name.
    """
    has_manifest = (folder / MANIFEST).is_file()
    if scope is not None and not has_manifest:
        return
    if folder.is_symlink():
        raise SourceInvalid(f"{folder} is a symbolic link, which is no user's folder; move the folder here, or name it")
    user = Scope.user(_clean_name(folder.name))
    if has_manifest:
        yield from _sessions_in_manifest(
            folder / MANIFEST, user if is_user and not trust_manifest else scope, trust_manifest
        )
    else:
        yield from (_session_of_file(path, user, folder) for path in _session_files(folder))


def _session_files(folder: Path) -> list[Path]:
    """Return the session files in a folder. Raises `SourceInvalid` if one is a symbolic link that leads out of it."""
    files = [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")]
    files = [path for path in files if path.suffix in (HISTORY, ".json")]
    inside = folder.resolve()
    for path in files:
        _check_inside(path, inside)
    histories = {path.stem for path in files if path.suffix == HISTORY}
    return sorted(
        path for path in files if path.suffix == HISTORY or not (path.stem in histories and _has_no_messages(path))
    )


def _check_inside(path: Path, folder: Path) -> None:
    """Raise `SourceInvalid` if a file is a symbolic link that leads out of this folder."""
    if path.is_symlink() and not path.resolve().is_relative_to(folder):
        raise SourceInvalid(f"{path} is a symbolic link that leads out of its folder; copy the file here, or name it")


def _has_no_messages(path: Path) -> bool:
    """Whether a file is a session of Agent Framework whose messages lie in a history file beside it."""
    try:
        return is_session_without_messages(parse_state(read_bytes(path, path.parent.resolve())))
    except ReadError:  # reading the session will raise it again
        return False


def _session_id_of_file(path: Path) -> str:
    """Return the session id that a file name stands for. Agent Framework encodes ids that are no safe file names."""
    name = _clean_name(path.stem)
    if name.startswith(ENCODED):
        encoded = name.removeprefix(ENCODED).upper()
        with suppress(ValueError):
            return _CONTROL.sub("\ufffd", b32decode(encoded + "=" * (-len(encoded) % 8)).decode())
    return name


def _clean_name(text: str) -> str:
    """Return a file name as text that every database accepts: valid UTF-8, without control characters."""
    return _CONTROL.sub("\ufffd", os.fsencode(text).decode("utf-8", "replace"))


def _session_of_file(path: Path, scope: Scope, folder: Path | None = None) -> Saved:
    return Saved(
        scope, _session_id_of_file(path), path=path, file_time=_file_time(path), folder=folder and folder.resolve()
    )


def _sessions_in_manifest(manifest: Path, scope: Scope | None, trust_manifest: bool) -> list[Saved]:
    try:
        entries = TypeAdapter(list[ManifestEntry]).validate_json(manifest.read_bytes())
    except OSError as error:
        raise SourceInvalid(f"{manifest} cannot be read ({error.strerror})") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the top"
        raise SourceInvalid(f"{manifest} is no manifest: at {where}: {first['msg']}") from None
    sessions = [_session_of_entry(entry, manifest, scope, trust_manifest) for entry in entries]
    counts = Counter((saved.scope, saved.session_id) for saved in sessions)
    twice = [key for key, count in counts.items() if count > 1]
    if twice:
        raise SourceInvalid(
            f"{manifest} lists session {twice[0][1]!r} of {twice[0][0]} twice; give each an id of its own"
        )
    return sessions


def _file_time(path: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)
    except (OSError, ValueError):  # reading the file will raise a better error
        return None


def _session_of_entry(entry: ManifestEntry, manifest: Path, scope: Scope | None, trust_manifest: bool) -> Saved:
    named = _named_scope(entry)
    owner = scope or named
    if owner is None:
        raise SourceInvalid(f"{manifest}: session {entry.session_id!r} names neither user_id nor scope")
    if _ends_before_start(entry):
        raise SourceInvalid(f"{manifest}: session {entry.session_id!r} ends before it starts")
    path = manifest.parent / entry.path
    if not trust_manifest:
        _check_allowed(entry, manifest, scope, named)
    return Saved(
        owner,
        entry.session_id,
        path=path,
        humans=tuple(entry.humans),
        started_at=entry.started_at,
        ended_at=entry.ended_at,
        file_time=_file_time(path),
        off_the_record=entry.off_the_record,
        folder=None if trust_manifest else manifest.parent.resolve(),
    )


def _ends_before_start(entry: ManifestEntry) -> bool:
    if entry.started_at is None or entry.ended_at is None:
        return False
    return at_speaker_offset(entry.ended_at, UTC) < at_speaker_offset(entry.started_at, UTC)


def _named_scope(entry: ManifestEntry) -> Scope | None:
    if entry.scope:
        return Scope.parse(entry.scope)
    return None if entry.user_id is None else Scope.user(entry.user_id)


def _check_allowed(entry: ManifestEntry, manifest: Path, scope: Scope | None, named: Scope | None) -> None:
    """Raise `SourceInvalid` if the entry names a file outside of the manifest's folder, or another scope."""
    where, mend = f"{manifest}: session {entry.session_id!r}", "correct it, or give --trust-manifest if you wrote it"
    try:
        folder, path = manifest.parent.resolve(), (manifest.parent / entry.path).resolve()
    except (OSError, RuntimeError, ValueError):  # a NUL in the path, or links that lead to each other
        raise SourceInvalid(f"{where} names {str(entry.path)!r}, which is no path; {mend}") from None
    if not entry.off_the_record and not path.is_relative_to(folder):
        raise SourceInvalid(f"{where} names {str(entry.path)!r}, which leads out of the manifest's folder; {mend}")
    if scope is not None and named is not None and named != scope:
        raise SourceInvalid(f"{where} is of {named}, and only {scope} is asked for; {mend}")
