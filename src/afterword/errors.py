"""What can go wrong in the store, one leaf for each reaction of the caller."""


class AfterwordError(Exception):
    """The base of every error that afterword raises on purpose. `is_usage`: what was asked for cannot be meant so."""

    is_usage = False


class StoreError(AfterwordError):
    """Something about the store; the message says what to do."""


class ScopeInvalid(StoreError, ValueError):
    """A scope's name cannot be used."""

    is_usage = True


class StoreInvalid(StoreError):
    """A store's URL names no database that facts can be kept in."""

    is_usage = True


class FileInvalid(StoreError):
    """A file is not what it should be, is damaged or cut short, or stands where a new one was to be made."""

    is_usage = True


class StoreUnreachable(StoreError):
    """The database did not answer, or refuses to be opened."""


class StoreMissing(StoreError):
    """There is no store at the place that was named; nothing was made."""


class StoreOutdated(StoreError):
    """The store's tables are older than this program; `afterword migrate` brings them up to date."""


class StoreTooNew(StoreError):
    """The store was written by a newer afterword; upgrade the program, the store is left alone."""


class NotFound(StoreError, LookupError):
    """No such fact, session or run in this scope."""


class StateConflict(StoreError):
    """A saved state belongs to another scope or another kind of agent than the one that asks for it."""


class Overtaken(StoreError):
    """Another process changed the same rows first; the transaction was rolled back and can be tried again."""


class ScopeMoved(Overtaken):
    """The scope has changed since a proposal was judged; judge it again and retry."""
