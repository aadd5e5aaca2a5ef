"""What Alembic runs: the migrations, inside the connection and transaction that the store hands over."""

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
