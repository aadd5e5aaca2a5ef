"""The environment in which Alembic runs the migrations: the connection and transaction of the store."""

from alembic import context
from sqlmodel import SQLModel

from afterword.store import tables  # noqa: F401 - the rows register themselves
from afterword.store.migrations import VERSION_TABLE

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=SQLModel.metadata,
    version_table=VERSION_TABLE,
    render_as_batch=connection.dialect.name == "sqlite",
)
context.run_migrations()
