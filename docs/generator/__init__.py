"""Makes the documentation: the reference from the code, and the pages of the site from the Markdown of the project."""
