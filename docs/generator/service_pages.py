"""The reference of the HTTP service, from its OpenAPI document, and of the MCP server, from its own lists."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

import afterword
from afterword.server.app import create_app
from afterword.server.mcp.registration import memory_server
from afterword.server.mcp.server import ToolCaller
from afterword.setting_sections import ServerOptions
from afterword.settings import Settings
from generator.markup import block, code, prose, table

NO_CONTENT = "no content"
PROBLEM = "application/problem+json"


def openapi_document() -> dict[str, Any]:
    """Return the document that the service serves."""
    return create_app(afterword.open("sqlite://", settings=Settings()), ServerOptions()).openapi()


def rest_operations() -> str:
    """Return each operation with its parameters, body and answers, and each schema with its fields."""
    document = openapi_document()
    parts = ["## Errors", table(("status", "meaning"), sorted(_errors(document)))]
    parts += [part for path, operations in document["paths"].items() for part in _operations(path, operations)]
    parts.append("## Schemas")
    for name, schema in sorted(document["components"]["schemas"].items()):
        parts += [f"### {code(name)}", *_schema(schema)]
    return "\n\n".join(parts)


def mcp_tools() -> str:
    """Return each tool, resource and prompt of the MCP server with its schemas."""
    return "\n\n".join(asyncio.run(_mcp_parts()))


async def _mcp_parts() -> list[str]:
    caller = cast(ToolCaller, _Writer())
    server = memory_server(lambda: caller)
    parts = ["## Tools"]
    for tool in await server.list_tools():
        parts += [f"### {code(tool.name)}", prose(tool.description or ""), "Arguments:", _json(tool.input_schema)]
        parts += ["Result:", _json(tool.output_schema)] if tool.output_schema else []
    parts.append("## Resources")
    for resource in await server.list_resource_templates():
        parts += [f"### {code(resource.uri_template)}", prose(resource.description or "")]
    parts.append("## Prompts")
    for prompt in await server.list_prompts():
        arguments = [(code(each.name), each.description or "") for each in prompt.arguments or ()]
        parts += [
            f"### {code(prompt.name)}",
            prose(prompt.description or ""),
            table(("argument", "meaning"), arguments),
        ]
    return parts


class _Writer:
    """A caller who may call every tool. No tool is called here."""

    may_write = True


def _json(schema: Mapping[str, Any]) -> str:
    return block(json.dumps(schema, indent=2, ensure_ascii=False), "json")


def _operations(path: str, operations: Mapping[str, Any]) -> Iterator[str]:
    for method, operation in operations.items():
        yield f"## {code(f'{method.upper()} {path}')}"
        yield prose(operation.get("description") or operation.get("summary", ""))
        if parameters := operation.get("parameters"):
            yield table(("parameter", "in", "type", "meaning"), map(_parameter, parameters))
        if body := operation.get("requestBody"):
            yield f"Body: {_contents(body['content'])}."
        answers = operation["responses"].items()
        yield table(
            ("answer", "content"),
            ((status, _contents(answer.get("content", {}))) for status, answer in answers if not _is_error(answer)),
        )


def _errors(document: Mapping[str, Any]) -> set[tuple[str, str]]:
    operations = (operation for path in document["paths"].values() for operation in path.values())
    answers = (pair for operation in operations for pair in operation["responses"].items())
    return {(status, answer["description"]) for status, answer in answers if _is_error(answer)}


def _is_error(answer: Mapping[str, Any]) -> bool:
    return PROBLEM in answer.get("content", {})


def _parameter(parameter: Mapping[str, Any]) -> tuple[str, str, str, str]:
    needed = "" if not parameter.get("required") else " Required."
    meaning = parameter.get("description") or parameter["schema"].get("description", "")
    return code(parameter["name"]), parameter["in"], _kind(parameter["schema"]), f"{meaning}{needed}"


def _contents(content: Mapping[str, Any]) -> str:
    return (
        ", ".join(f"{_kind(body.get('schema', {}))} ({code(media)})" for media, body in content.items()) or NO_CONTENT
    )


def _schema(schema: Mapping[str, Any]) -> Iterator[str]:
    if description := schema.get("description"):
        yield prose(description)
    required = schema.get("required", ())
    fields = schema.get("properties", {})
    if fields:
        yield table(
            ("field", "type", "meaning"),
            (
                (code(name), _kind(field), f"{field.get('description', '')}{' Required.' if name in required else ''}")
                for name, field in fields.items()
            ),
        )
    else:
        yield _kind(schema)


def _kind(schema: Mapping[str, Any]) -> str:
    """Return what a schema allows, in short; named schemas are links."""
    if reference := schema.get("$ref"):
        name = reference.rpartition("/")[2]
        return f"[{code(name)}](#{name.lower()})"
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(_kind(choice) for choice in choices)
    if values := schema.get("enum"):
        return f"one of {', '.join(code(str(value)) for value in values)}"
    if "const" in schema:
        return code(str(schema["const"]))
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return f"{kind} ({schema['format']})" if "format" in schema else str(kind)
