"""The interface without `await`: the same methods, in notebooks, scripts and threads."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent
from typing import Any, get_args, get_type_hints

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.replay import ReplayChatCompletionClient

import afterword
from afterword import SyncAfterword
from afterword.agents import tools
from afterword.client.resources import Resources
from afterword.client.synchronous import wrappers
from afterword.errors import NotFound
from afterword.pipeline.background.halt import Halt
from afterword.settings import Settings
from afterword.store.database.engine import Store
from batches import wait_until
from nursery import Child
from programs import run_text
from synchronous_stub import SYNC_NAMES, WRAPPED, stub_text

PORTO = {
    "type": "AssistantAgentState",
    "llm_context": {"messages": [{"content": "I live in Porto.", "source": "user", "type": "UserMessage"}]},
}


@pytest.fixture
def app(tmp_path: Path) -> Iterator[SyncAfterword]:
    with afterword.connect(f"sqlite:///{tmp_path}/afterword.db", settings=Settings()) as connected:
        yield connected
    assert "afterword" not in {thread.name for thread in threading.enumerate()}


def test_the_types_are_those_of_the_asynchronous_classes() -> None:
    path = Path(inspect.getsourcefile(wrappers) or "").with_suffix(".pyi")
    if os.environ.get("AFTERWORD_TEST_WRITE_STUBS"):
        path.write_text(stub_text(), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == stub_text(), "AFTERWORD_TEST_WRITE_STUBS=1 writes it anew"


@pytest.mark.parametrize("cls", WRAPPED)
def test_every_method_has_a_counterpart_of_the_same_signature(cls: type) -> None:
    counterpart = getattr(wrappers, SYNC_NAMES[cls.__name__])
    for name in (name for name in dir(cls) if not name.startswith("_")):
        member, other = inspect.getattr_static(cls, name), inspect.getattr_static(counterpart, name)
        assert not inspect.iscoroutinefunction(other), name
        assert other.__doc__, name
        if callable(member):
            parameters = [signature.parameters for signature in map(inspect.signature, (member, other))]
            assert parameters[0] == parameters[1], name


FOR_EVENT_LOOPS = {
    afterword.FactMemory: "an agent reads it in its own event loop",
    Resources: "what all methods share; nobody else uses it",
    Store: "for functions with await, such as process_session",
}


NAMES_FOR_TYPES = {"FactMemory": afterword.FactMemory, "ToolOfAgent": tools.ToolOfAgent}
"""Names that the client imports for types alone."""


def test_nothing_that_they_return_must_be_awaited() -> None:
    """Nobody notices a coroutine that is not awaited: nothing happens, and nothing fails."""
    found = {part for cls in WRAPPED for part in _returned(cls, is_wrapped=True)}
    reached, asynchronous = set[type](), dict[str, list[str]]()
    while found:
        cls = found.pop()
        if cls in reached or cls in FOR_EVENT_LOOPS:
            continue
        reached.add(cls)
        # Only what a method itself returns is wrapped, not what a result holds.
        names = [name for name, member in _public(cls) if _is_asynchronous(member)]
        asynchronous.update({cls.__qualname__: names} if names else {})
        found |= set(_returned(cls))
    assert asynchronous == {}
    assert {afterword.Fact, afterword.ProcessingReport} <= reached
    assert len(reached) > 60


def _returned(cls: type, *, is_wrapped: bool = False) -> Iterator[type]:
    """Yield the classes of afterword that the fields, properties and methods of a class return or hold."""
    hints = [*_hints(cls).values()]
    for _, member in _public(cls):
        function = member.fget if isinstance(member, property) else member
        hints += [_hints(function).get("return")] if inspect.isfunction(function) else []
    for hint in hints:
        if not (is_wrapped and hint in WRAPPED):
            yield from (part for part in _parts(hint) if part.__module__.startswith("afterword."))


def _public(cls: type) -> list[tuple[str, Any]]:
    """Return the public members of a class, without those of other libraries."""
    own = [name for base in cls.__mro__ if base.__module__.startswith("afterword.") for name in vars(base)]
    return [(name, inspect.getattr_static(cls, name)) for name in dict.fromkeys(own) if not name.startswith("_")]


def _hints(thing: Any) -> dict[str, Any]:
    """Return the type hints of a class or function. Names that are imported for types alone stand for themselves."""
    thing = inspect.unwrap(thing) if inspect.isfunction(thing) else thing
    return get_type_hints(thing, localns=NAMES_FOR_TYPES)


def _parts(hint: Any) -> Iterator[type]:
    """Yield the classes in a type hint."""
    if isinstance(hint, type) and not get_args(hint):
        yield hint
    for part in get_args(hint):
        yield from _parts(part)


def _is_asynchronous(member: Any) -> bool:
    function = inspect.unwrap(member) if inspect.isfunction(member) else member
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def test_sessions_are_processed_in_the_background_until_finish_returns(app: SyncAfterword) -> None:
    mira, processor = app.user("mira"), app.processor()
    agent = AssistantAgent("assistant", ReplayChatCompletionClient(["Noted."] * 2))
    with mira.record(agent, session_id="monday", process=True):
        asyncio.run(_say(agent, "I live in Porto."))
    processor.finish()
    assert [fact.value for fact in mira.facts().facts] == ["Porto"]
    with mira.record(agent, session_id="monday"):
        asyncio.run(_say(agent, "I am allergic to nuts."))
    processor.start(mira.scope, "monday", after_s=600)
    processor.finish()
    assert {fact.value for fact in mira.facts().facts} == {"Porto", "nuts"}
    processor.start(mira.scope, "monday", after_s=600)
    processor.stop()
    processor.finish()


async def _say(agent: AssistantAgent, text: str) -> None:
    await agent.run(task=text)


def test_a_memory_is_read_and_changed(app: SyncAfterword) -> None:
    mira = app.user("mira")
    assert str(mira.scope) == "default/user/mira"
    assert repr(mira) == "SyncScopeMemory('default/user/mira')"
    report = mira.process(PORTO, session_id="monday", started_at="2026-03-02")
    assert [session.result_name for session in report.sessions] == ["done"]
    (porto,) = mira.facts().facts
    edited = mira.edit(porto.id, value="Oslo")
    assert [fact.value for fact in mira.facts().facts] == ["Oslo"]
    app.undo(edited.run.id)
    assert [fact.value for fact in mira.facts().facts] == ["Porto"]
    assert [str(scope) for scope in app.scopes().scopes] == ["default/user/mira"]
    assert app.keys.verify(app.keys.create(user="mira").secret).scope == mira.scope
    assert mira.for_agent().facts().total == 1
    with pytest.raises(NotFound):
        mira.fact("ffffff")
    app.close()
    assert mira.facts().total == 1  # opened again


def test_a_session_is_recorded_in_a_plain_block(app: SyncAfterword) -> None:
    mira = app.user("mira")
    client = ReplayChatCompletionClient(["Noted."])
    agent = AssistantAgent("assistant", client, memory=[mira.memory()])  # its own loop reads the memory

    async def converse() -> None:
        await agent.run(task="I live in Porto.")

    with mira.record(agent, session_id="monday") as recorded:
        assert recorded is agent
        asyncio.run(converse())
    assert [session.result_name for session in app.run_pending().sessions] == ["done"]
    assert [fact.value for fact in mira.facts().facts] == ["Porto"]


async def test_it_works_where_an_event_loop_runs_already(app: SyncAfterword) -> None:
    """As in a notebook."""
    app.user("mira").remember("I like tea.")
    assert app.user("mira").facts().total == 1


def test_several_threads_share_a_connection(app: SyncAfterword) -> None:
    def remember(number: int) -> int:
        mira = app.user(f"user{number % 3}")
        mira.remember(f"Project {number} ships on day {number}.")
        return mira.facts().total

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(remember, range(24)))
    assert sum(app.scope(scope).facts().total for scope in app.scopes().scopes) == 24


def forked(text: str, folder: Path) -> Child:
    """Run a program in a process that need not load the library anew."""
    environment = {**os.environ, "AFTERWORD_STORE__URL": f"sqlite:///{folder}/afterword.db"}
    files = folder / "program.txt", folder / "program.errors"
    return Child([dedent(text)], environment, files[0], program=run_text, errors=files[1])


def program(text: str, folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "AFTERWORD_STORE__URL": f"sqlite:///{folder}/afterword.db"}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", dedent(text)],
        env=environment,
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def errors_of(process: Child) -> str:
    return process.log.with_suffix(".errors").read_text()


def test_ctrl_c_ends_the_call_and_leaves_the_connection_usable(tmp_path: Path) -> None:
    running = forked(
        """
        import afterword
        with afterword.connect() as app:
            app.user("mira").remember("I like tea.")
            try:
                app.schedule(on_begin=lambda _: print("begun", flush=True))
            except KeyboardInterrupt:
                print("interrupted", app.user("mira").facts().total)
        """,
        tmp_path,
    )
    wait_until(lambda: running.printed() == "begun\n" or running.poll() is not None)
    running.interrupt()
    assert (running.wait(), running.printed(), errors_of(running)) == (0, "begun\ninterrupted 1\n", "")


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="the system blocks no signal for one thread")
def test_ctrl_c_is_noticed_where_it_does_not_end_the_wait(app: SyncAfterword) -> None:
    assert app.user("mira").facts().total == 0  # starts the thread of the calls
    # Blocked in this thread, the signal reaches that one and does not end the wait, as one that comes just before it.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    halt = Halt()
    unnoticed = threading.Timer(20, halt.stop, ["the signal was not noticed"])
    unnoticed.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            app.schedule(halt=halt, on_begin=lambda _: os.kill(os.getpid(), signal.SIGINT))
    finally:
        unnoticed.cancel()
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGINT, handler)
    assert app.user("mira").facts().total == 0


def test_a_program_that_does_not_close_ends_all_the_same(tmp_path: Path) -> None:
    running = program(
        """
        import afterword
        app = afterword.connect()
        app.user("mira").remember("I like tea.")
        print(app.user("mira").facts().total)
        """,
        tmp_path,
    )
    output, errors = running.communicate(timeout=30)
    assert (output, errors, running.returncode) == ("1\n", "", 0)


def test_a_schedule_is_stopped_from_another_thread(app: SyncAfterword) -> None:
    halt, begun = Halt(), threading.Event()

    def stop() -> None:
        begun.wait()
        halt.stop("enough")

    threading.Thread(target=stop).start()
    app.schedule(halt=halt, on_begin=lambda _: begun.set())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_forked_process_is_told_to_connect_itself(tmp_path: Path) -> None:
    running = forked(
        """
        import os, warnings
        import afterword
        warnings.simplefilter("ignore", DeprecationWarning)
        early, late = afterword.connect(), afterword.connect()
        early.user("mira").remember("I like tea.")
        if os.fork() == 0:
            print(late.user("mira").facts().total, flush=True)
            late.close()
            try:
                early.user("mira").facts()
            except afterword.AfterwordError as error:
                print(error, flush=True)
            os._exit(0)
        os.wait()
        early.close()
        """,
        tmp_path,
    )
    assert (running.wait(), errors_of(running)) == (0, "")
    assert running.printed().splitlines()[0] == "1"
    assert "call `afterword.connect` in each process" in running.printed()


def test_a_callback_may_not_wait_for_its_own_thread(app: SyncAfterword) -> None:
    def read(_: str) -> None:
        app.user("mira").facts()

    with pytest.raises(RuntimeError, match="event loop thread"):
        app.schedule(on_begin=read)
