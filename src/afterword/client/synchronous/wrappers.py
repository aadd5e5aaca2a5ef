"""Classes like `Afterword` and `ScopeMemory`, without `await`. Their methods are made from the asynchronous classes.

The types are in wrappers.pyi, which a test writes.
"""

from __future__ import annotations

import functools
import inspect
from contextlib import AbstractAsyncContextManager

from afterword.client.access.keys import KeyedRequests, Keys
from afterword.client.access.webhooks import Webhooks
from afterword.client.agent_access import AgentAccess
from afterword.client.app import Afterword, open  # noqa: A004 - as in gzip.open
from afterword.client.scope_memory import ScopeMemory
from afterword.client.session_processing.background_processor import BackgroundProcessor
from afterword.client.synchronous.portal import Portal


class SynchronousWrapper:
    """Wraps an object with asynchronous methods. Its methods run those of the object in a portal, and wait for them."""

    def __init__(self, wrapped, portal):
        self._wrapped, self._portal = wrapped, portal

    def __init_subclass__(cls, *, of):
        """Add a synchronous version of every public method and property of the class `of`."""
        cls.__doc__ = f"{of.__doc__.splitlines()[0]} Like `{of.__name__}`, without `await`; for any number of threads."
        for name in dir(of):
            if not name.startswith("_") and name not in vars(cls):
                setattr(cls, name, _synchronous_member(inspect.getattr_static(of, name)))
        _SYNCHRONOUS[of] = cls

    def __repr__(self):
        return f"Sync{self._wrapped!r}"

    def _converted(self, result):
        if isinstance(result, AbstractAsyncContextManager):
            return self._portal.synchronous_manager(result)
        return _SYNCHRONOUS[type(result)](result, self._portal) if type(result) in _SYNCHRONOUS else result


_SYNCHRONOUS = {}


def _synchronous_member(member):
    if isinstance(member, property):
        return property(lambda self: self._converted(member.fget(self._wrapped)), doc=member.__doc__)
    if inspect.iscoroutinefunction(member):

        @functools.wraps(member)
        def run(self, *arguments, **options):
            return self._portal.run(lambda: member(self._wrapped, *arguments, **options))

        return run

    @functools.wraps(member)
    def call(self, *arguments, **options):
        return self._converted(member(self._wrapped, *arguments, **options))

    return call


class SyncAfterword(SynchronousWrapper, of=Afterword):
    """See `Afterword`."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Close the store and all connections, and end the thread. The next call opens them again."""
        self._portal.close(self._wrapped.close)


class SyncScopeMemory(SynchronousWrapper, of=ScopeMemory):
    """See `ScopeMemory`."""

    @property
    def scope(self):
        """The scope."""
        return self._wrapped.scope


class SyncKeys(SynchronousWrapper, of=Keys):
    """See `Keys`."""


class SyncKeyedRequests(SynchronousWrapper, of=KeyedRequests):
    """See `KeyedRequests`."""


class SyncWebhooks(SynchronousWrapper, of=Webhooks):
    """See `Webhooks`."""


class SyncAgentAccess(SynchronousWrapper, of=AgentAccess):
    """See `AgentAccess`."""


class SyncBackgroundProcessor(SynchronousWrapper, of=BackgroundProcessor):
    """See `BackgroundProcessor`."""

    @functools.wraps(BackgroundProcessor.start)
    def start(self, *arguments, **options):
        """Process a session in the event loop in which `finish` looks for it."""

        async def start():
            self._wrapped.start(*arguments, **options)

        self._portal.run(start)


def connect(*arguments, **options):
    """Return the `Afterword` of a store, as `open` does, for code without `await`. Use it with `with`, or close it.

    It also works in notebooks, where an event loop is already running, and it may be used from several threads. Ctrl-C
    cancels the call that it interrupts. After a fork (for example by a web server that loads the application first),
    call `connect` in each child process. Raises `SettingsInvalid`.
    """
    return SyncAfterword(open(*arguments, **options), Portal())


connect.__signature__ = inspect.signature(open)
