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

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.replay import ReplayChatCompletionClient

import afterword
from afterword import SyncAfterword
from afterword.client.synchronous import wrappers
from afterword.errors import NotFound
from afterword.pipeline.background.halt import Halt
from afterword.settings import Settings
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
