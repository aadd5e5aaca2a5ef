"""The adapter for agents of Microsoft Agent Framework. It needs an extra: pip install 'afterword[agent-framework]'.

No other package of afterword imports that framework. The adapter uses the memory, tools and recorder of
`afterword.agents`.
"""

from __future__ import annotations

from afterword.agents.agent_framework.provider import FactMemoryProvider

__all__ = ["FactMemoryProvider"]
