"""The adapter for agents of Microsoft Agent Framework. It needs the extra: pip install 'afterword[agent-framework]'.

Nothing else imports that library. It uses the memory, the tools and the recorder of this package.
"""

from __future__ import annotations

from importlib import import_module

from afterword.agents.agent_framework.provider import FactMemoryProvider

__all__ = ["FactMemoryProvider"]

# As the name `afterword.FactMemory` does: the settings lie above this package, which cannot import them.
import_module("afterword.live_settings").provide()
