"""A model that fails at random, and a herd of processes that are killed at random and started again."""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from afterword.extractors.testing import Json, Reply, request_key
from nursery import Child
from small_talk import is_unreadable, right_reply
from spoiling import FAULTS

SPOILT = 0.2
LEASE_S, LONGEST_S = 3.0, 300.0
ALTERING = frozenset({"other-language"})
"""What changes the answer without spoiling it."""
NOT_A_REPLY = frozenset({"no-connection"})
"""What an endpoint that runs cannot do; `dropped` is as near as it comes."""
KINDS = tuple(name for name in FAULTS if name not in ALTERING | NOT_A_REPLY)
LONGEST_PAUSE_BEFORE_A_KILL_S = 0.15
BETWEEN_STARTS_S = 1.0
"""How long an ended process waits at most before it is started again. Most of them find nothing to do."""


class ChaosModel:
    """The responder of an endpoint: right answers, of which a fifth is spoilt, in every way there is, one by one.

    Whether an answer is spoilt depends on the request and on how often it was asked. `on_request` is called before each
    answer. `heal()` ends all of it.
    """

    def __init__(self, seed: int) -> None:
        self.is_well = False
        self.asked = 0
        self.met: Counter[str] = Counter()
        self.on_request: Callable[[], None] = lambda: None
        self._seed, self._times = seed, Counter[str]()
        self._dice, self._deck = random.Random(seed), list[str]()
        self._turn = threading.Lock()

    def heal(self) -> None:
        """Give nothing but right answers from now on."""
        self.is_well = True
        self.on_request = lambda: None

    def __call__(self, request: Json) -> Reply:
        """Answer a request."""
        with self._turn:
            self.asked += 1
            self.on_request()
            if is_unreadable(request) and not self.is_well:
                return Reply(refusal="I would rather not.")
            kind = None if self.is_well else self._kind(request)
        right = right_reply(request)
        return FAULTS[kind].spoilt(request, right) if kind else right

    def _kind(self, request: Json) -> str | None:
        """Return how the answer is to be spoilt, None where it is not."""
        key = request_key(request)
        self._times[key] += 1
        if random.Random(f"{self._seed} {key} {self._times[key]}").random() >= SPOILT:
            return None
        if not self._deck:
            self._deck = self._dice.sample(KINDS, len(KINDS))
        kind = self._deck.pop()
        self.met[kind] += 1
        return kind


class Herd:
    """Processes that run `afterword` with these arguments; whichever ends or is killed is started again.

    Every few requests of a model one that lives is killed, somewhat later. What they print is kept in `folder`.
    """

    def __init__(
        self, commands: Sequence[Sequence[str]], environment: Mapping[str, str], folder: Path, *, kills: int, seed: int
    ) -> None:
        self.commands, self.environment, self.folder = commands, environment, folder
        self.living: list[Child | None] = [None] * len(commands)
        self.started, self.killed = 0, 0
        self._names = [""] * len(commands)
        self.codes: Counter[int] = Counter()
        self._kills, self._dice = kills, random.Random(seed)
        self._until_next = self._dice.randint(3, 9)
        self._timers: list[threading.Timer] = []

    @staticmethod
    def name(number: int) -> str:
        """Return what the process is called that was started as the so-manieth; the database knows it by that, too."""
        return f"process-{number:03}"

    def on_request(self) -> None:
        """Count a request; after some of them, kill one."""
        self._until_next -= 1
        if self._until_next > 0 or self._kills == 0:
            return
        self._kills -= 1
        self._until_next = self._dice.randint(3, 9)
        after_s, draw = self._dice.uniform(0, LONGEST_PAUSE_BEFORE_A_KILL_S), self._dice.random()
        self._timers.append(threading.Timer(after_s, self._kill, [draw]))
        self._timers[-1].start()

    def _kill(self, draw: float) -> None:
        alive = [one for one in self.living if one is not None and one.poll() is None]
        if alive:
            alive[int(draw * len(alive))].kill()
            self.killed += 1
        else:
            self._kills += 1  # a burst of requests asked for several kills of one process

    async def tend(
        self, is_over: Callable[[], Awaitable[bool]], on_end: Callable[[str], Awaitable[None]], longest_s: float
    ) -> None:
        """Start what does not run, until it is over; `on_end` gets the name of each that has ended."""
        try:
            async with asyncio.timeout(longest_s):
                while not await is_over():
                    for slot, one in enumerate(self.living):
                        if one is None or one.poll() is not None:
                            if one is not None:
                                self.codes[one.wait()] += 1
                                await on_end(self._names[slot])
                            self.living[slot] = self._start(slot)
                    await asyncio.sleep(BETWEEN_STARTS_S)
        except TimeoutError:
            raise AssertionError(f"not over after {longest_s:.0f} s: {self._state()}") from None

    def _state(self) -> str:
        """Return what is known of those that live, and what they printed last."""
        told = {name: (self.folder / f"{name}.txt").read_text()[-500:] for name in self._names if name}
        lives = {
            name: one is not None and one.poll() is None for name, one in zip(self._names, self.living, strict=True)
        }
        return f"{self.started} started, {self.killed} killed, ended with {dict(self.codes)}, {lives=}, {told=}"

    def _start(self, slot: int) -> Child:
        self.started += 1
        name = self._names[slot] = self.name(self.started)
        mode = self._dice.choice(["json_schema", "tools", "json"])
        environment = {**self.environment, "AFTERWORD_MODEL__MODE": mode, "PGAPPNAME": name}
        return Child(self.commands[slot], environment, self.folder / f"{name}.txt")

    def untold(self) -> list[str]:
        """Return the end of what each printed that met an error which nobody had foreseen."""
        told = [log.read_text() for log in sorted(self.folder.glob("process-*.txt"))]
        return [one[-1500:] for one in told if "Traceback" in one]

    def end(self) -> None:
        """Kill what lives, and kill no more."""
        self._kills = 0
        for timer in self._timers:
            timer.cancel()
            timer.join()
        for one in self.living:
            if one is not None:
                one.kill()
                one.wait()


def environment(url: str, base_url: str, cache: Path) -> dict[str, str]:
    """Return the settings of the herd: short pauses, a short lease, and the endpoint."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("AFTERWORD_", "OPENAI_"))}
    return {
        **clean,
        "XDG_CACHE_HOME": str(cache),
        "AFTERWORD_STORE__URL": url,
        "AFTERWORD_EMBEDDING__KIND": "none",
        "AFTERWORD_EXTRACTOR": "model",
        "AFTERWORD_MODEL__NAME": "scripted",
        "AFTERWORD_MODEL__BASE_URL": base_url,
        "AFTERWORD_MODEL__API_KEY": "key",
        "AFTERWORD_MODEL__MODE": "json_schema",
        "AFTERWORD_MODEL__TIMEOUT_S": "2",
        "AFTERWORD_MODEL__MAX_RETRIES": "1",
        "AFTERWORD_RETRY__TRIES": "4",
        "AFTERWORD_RETRY__FIRST_PAUSE_S": "0.1",
        "AFTERWORD_RETRY__LONGEST_PAUSE_S": "0.5",
        "AFTERWORD_SCHEDULE__PENDING": "1",
        "AFTERWORD_SCHEDULE__RETRIES": "1",
        "AFTERWORD_SCHEDULE__CONSOLIDATION": "3",
        "AFTERWORD_SCHEDULE__WEBHOOKS": "1",
        "AFTERWORD_SCHEDULE__NEW_SESSIONS": "2",
        "AFTERWORD_SCHEDULE__IDLE_S": "0",
        "AFTERWORD_SCHEDULE__APART_S": "1",
        "AFTERWORD_SCHEDULE__JITTER_S": "0",
        "AFTERWORD_SCHEDULE__LEASE_S": str(LEASE_S),
    }


def ran(environment: Mapping[str, str], folder: Path, *arguments: str) -> str:
    """Run one command undisturbed and return what it prints; it must end well."""
    log = folder / f"{'-'.join(arguments).replace('/', '_')[-80:]}.txt"
    log.unlink(missing_ok=True)
    code, told = Child(arguments, environment, log).wait(LONGEST_S), log.read_text()
    assert code == 0, f"{arguments}: {told[-2000:]}"
    return told
