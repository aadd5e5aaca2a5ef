"""The demo with its bundled sessions, saved by AutoGen 0.7.5. The user is invented and the times were set by hand."""
