"""The adapter for agents of Microsoft Agent Framework. It needs an extra: pip install 'afterword[agent-framework]'.

No other package of afterword imports that framework. The adapter uses the memory, tools and recorder of
`afterword.agents`.
"""

from __future__ import annotations

from importlib import import_module

from afterword.agents.agent_framework.provider import FactMemoryProvider

__all__ = ["FactMemoryProvider"]

# This package must not import the settings, since they import it. Loading the module by its name registers them, as
# `afterword.FactMemory` does.
import_module("afterword.live_settings").provide()
