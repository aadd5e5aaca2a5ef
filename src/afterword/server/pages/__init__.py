"""Web pages for people: what is remembered, where it comes from, what waits for a decision, and how to forget it.

Every change also works without JavaScript. `mount.add_pages` adds the pages to the service.
"""
