"""An AutoGen agent that uses the memory of another environment through the Model Context Protocol.

    pip install 'autogen-agentchat' 'autogen-ext[mcp]' 'mcp<2'
    uv tool install 'afterword[server]'
    python examples/mcp_workbench.py mira "Which seat do I prefer?"

It runs offline: the model is scripted and calls the tool `recall`, as a real model would. AFTERWORD_STORE__URL names
the store, by default afterword.db in the working folder.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import ToolCallExecutionEvent
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, ModelFamily, ModelInfo, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient

try:
    from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams
except ImportError as error:
    raise SystemExit(f"this example needs: pip install 'autogen-ext[mcp]' 'mcp<2' ({error})") from None

INFO = ModelInfo(
    vision=False, function_calling=True, json_output=False, family=ModelFamily.UNKNOWN, structured_output=False
)


def scripted_model(question: str) -> ReplayChatCompletionClient:
    """Return a scripted model that calls `recall` with the question, and then answers."""
    lookup = FunctionCall(id="1", name="recall", arguments=json.dumps({"query": question}))
    usage = RequestUsage(prompt_tokens=0, completion_tokens=0)
    asks = CreateResult(finish_reason="function_calls", content=[lookup], usage=usage, cached=False)
    return ReplayChatCompletionClient([asks, "I have looked it up."], model_info=INFO)


async def main(user: str, question: str) -> None:
    """Ask an agent that has the tools of a user's memory, and print what the memory answered."""
    settings = {name: value for name, value in os.environ.items() if name.startswith("AFTERWORD_")}
    params = StdioServerParams(command="afterword", args=["mcp", "--user", user], env=settings, read_timeout_seconds=60)
    async with McpWorkbench(params) as workbench:
        agent = AssistantAgent("assistant", scripted_model(question), workbench=workbench, reflect_on_tool_use=True)
        result = await agent.run(task=question)
        for message in result.messages:
            if isinstance(message, ToolCallExecutionEvent):
                for fact in json.loads(message.content[0].content)["facts"]:
                    source = fact["sources"][0]["session_id"]
                    sys.stdout.write(f"{fact['statement']} ({fact['status']}; session {source})\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], " ".join(sys.argv[2:])))
