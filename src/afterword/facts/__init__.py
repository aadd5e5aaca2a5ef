"""What is known and when it holds: assertions, verdicts, the timeline. Pure; imports nothing else but errors."""
