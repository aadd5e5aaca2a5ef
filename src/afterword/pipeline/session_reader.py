"""Reading all windows of one session. The readings are kept, so that a repeated try makes no calls."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from afterword.extractors.extractor import Extractor, Usage, Window
from afterword.extractors.grounding import Grounding
from afterword.extractors.words_called_private import WordsCalledPrivate
from afterword.facts.transcripts import Turn
from afterword.pipeline.intake import (
    PreparedSession,
    Saved,
    prepare_session,
    turns_begin_with,
    without_words_called_private,
)
from afterword.pipeline.window_reader import WindowReader, ground_window, limited_reading, window_reading
from afterword.store.database.engine import Store
from afterword.store.proposals import WindowReading
from afterword.telemetry import Count, count


class SessionReader:
    """Reads the windows of one session, and keeps the readings.

    A reading is made again if its turns have got other numbers, if something was forgotten since, or if a model has
    called more of the session private. In the last two cases the answers of the extractor are reused for it.
    """

    def __init__(self, store: Store, saved: Saved, extractor: Extractor) -> None:
        self._store, self._saved, self._extractor = store, saved, extractor
        self._window_reader = WindowReader(extractor, store.privacy)
        self._readings: dict[str, WindowReading] = {}
        self._turns: Sequence[Turn] = ()
        self._forgotten_size = 0

    @property
    def usage(self) -> Usage:
        """The cost of all calls so far, failed ones included."""
        return self._window_reader.usage

    @property
    def called_private(self) -> WordsCalledPrivate:
        """The words that the model called private."""
        return self._window_reader.called_private

    @property
    def splits(self) -> int:
        """How many windows were too long for the model."""
        return self._window_reader.splits

    async def prepare(self, now: datetime) -> PreparedSession:
        """Return the session as it is stored now, with everything masked that a model has called private."""
        prepared = await prepare_session(self._store, self._saved, self._extractor.version, now=now)
        if not turns_begin_with(prepared.transcript.turns, self._turns):
            self._window_reader.drop_answers()
            self._readings.clear()
        self._turns = prepared.transcript.turns
        return self._mask(prepared)

    async def read(self, prepared: PreparedSession) -> tuple[PreparedSession, list[WindowReading]]:
        """Return the session with everything masked that the model calls private, and the readings of its windows."""
        readings = await self._read_windows(prepared)
        masked = self._mask(prepared)
        if masked is prepared:
            return prepared, readings
        self._readings.clear()  # they were grounded before everything private was known
        return await self.read(masked)

    def _mask(self, prepared: PreparedSession) -> PreparedSession:
        return without_words_called_private(prepared, self.called_private, self._extractor.version)

    async def _read_windows(self, prepared: PreparedSession) -> list[WindowReading]:
        stored, readings = prepared.stored, list[WindowReading]()
        if self._forgotten_size != stored.forgotten.forgotten_item_count:
            self._readings.clear()  # they were grounded before something was forgotten
            self._forgotten_size = stored.forgotten.forgotten_item_count
        most = self._store.privacy.facts_per_session
        for window, key in zip(prepared.windows, prepared.keys, strict=True):
            count(Count.CACHE, cache="window", hit=key in stored.readings)
            if key in stored.readings:
                reading = window_reading(key, window, Grounding(stored.readings[key], ()))
            else:
                reading = await self._read_window(window, key, prepared, most)
            readings.append(limited_reading(reading, most))
            most -= len(readings[-1].assertions)
        return readings

    async def _read_window(self, window: Window, key: str, prepared: PreparedSession, most: int) -> WindowReading:
        """Return the reading of a window that was never stored. Up to `most` statements are wanted."""
        if key in self._readings:
            return self._readings[key]
        await asyncio.sleep(0)  # an extractor without calls would hold the event loop until the last window
        ground = partial(
            ground_window,
            prepared=prepared,
            saved=self._saved,
            privacy=self._store.privacy,
            private=self.called_private,
            most=most,
        )
        grounding = await self._window_reader.read(window, ground)
        count(Count.ASSERTIONS, len(grounding.assertions))
        for rejection in grounding.rejections:
            count(Count.REFUSED, reason=str(rejection.reason))
        reading = self._readings[key] = window_reading(key, window, grounding)
        return reading
