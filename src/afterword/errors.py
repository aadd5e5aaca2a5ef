"""The base of all errors, and the errors of the store. Each class asks for a different reaction of the caller."""


class AfterwordError(Exception):
    """The base of every error that afterword raises on purpose. Show its message: it says what to do next.

    `is_usage` is set if the request itself was wrong. Correct it before you try again.
    """

    is_usage = False


class ArgumentInvalid(AfterwordError, ValueError):
    """An argument cannot be used; the message says which one, and what would fit."""

    is_usage = True


class KeyInvalid(AfterwordError):
    """A key of the service is unknown, was revoked, or has expired. Use another key."""


class RequestReused(AfterwordError):
    """An idempotency key was already used for another request. Use a new key for a new request."""

    is_usage = True


class RequestPending(AfterwordError):
    """A request with this idempotency key is still being processed. Repeat it in a moment."""


class StoreError(AfterwordError):
    """The base of the errors of the store. Follow the message, which says what to do next."""


class ScopeInvalid(StoreError, ValueError):
    """The name of a scope is not allowed. Choose another name."""

    is_usage = True


class StoreInvalid(StoreError):
    """This store cannot be used, or not for what was asked. The message says why.

    Its URL, its kind of database or its encoding is not supported, its file is empty, or only SQLite can do this.
    """

    is_usage = True


class FileInvalid(StoreError):
    """A file is damaged, incomplete or not of the expected kind, or a file to be created exists already.

    Name another file.
    """

    is_usage = True


class StoreUnreachable(StoreError):
    """The database did not answer, or could not be opened. Start it or correct its address, then try again."""


class StoreMissing(StoreError):
    """There is no store at this address, and none was created. Correct the address, or process a session first."""


class StoreOutdated(StoreError):
    """The tables of the store are older than this program. Run `afterword migrate`."""


class StoreTooNew(StoreError):
    """A newer version of afterword wrote the store. Upgrade the program; the store was not changed."""


class ClockAhead(StoreError):
    """This machine's clock is far ahead of the database's. Set it, then try again."""


class NotFound(StoreError, LookupError):
    """This scope has no such fact, session or run. Check the id and the scope.

    If the scope itself is unknown, `nearest` are the names of known scopes that may be meant.
    """

    def __init__(self, *message: object, nearest: tuple[str, ...] = ()) -> None:
        super().__init__(*message)
        self.nearest = nearest


class NothingSelected(NotFound):
    """No session fits the arguments. Correct the id, the scope or the path."""

    is_usage = True


class Ambiguous(StoreError, LookupError):
    """Several scopes have a session or fact with this id. Name the scope as well."""

    is_usage = True


class StateConflict(StoreError):
    """A request conflicts with what is stored, for example a state of another kind of agent. Follow the message."""


class Overtaken(StoreError):
    """Another process changed the same rows first, and the transaction was rolled back. Try again."""


class ScopeMoved(Overtaken):
    """The scope has changed since a proposal was judged. Repeat the call that raised this."""
