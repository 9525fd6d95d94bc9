"""What a client of the Python library gets from the server.

Arguments: the mode, the version it leads to, then an address or the words of a command. Prints a line for every part, and
`all` at the end.
"""

import os
import sys
import time

import anyio
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp_types import ElicitResult

MODE, VERSION, *TARGET = sys.argv[1:]
ASKED = []


def target():
    if TARGET[0].startswith("http://"):
        return TARGET[0]
    return stdio_client(
        StdioServerParameters(command=TARGET[0], args=TARGET[1:], env=dict(os.environ))
    )


def filled(schema):
    """An answer that fits the form."""
    values = {}
    for name, field in schema.get("properties", {}).items():
        if "enum" in field:
            values[name] = field["enum"][0]
        elif field.get("type") == "boolean":
            values[name] = True
        elif field.get("type") in ("integer", "number"):
            values[name] = 1
        else:
            values[name] = "Ada"
    return values


def answering(action):
    async def answer(context, params):
        ASKED.append(params.message)
        content = filled(params.requested_schema) if action == "accept" else None
        return ElicitResult(action=action, content=content)

    return answer


def text(result):
    return "\n".join(block.text for block in result.content if block.type == "text")


def done(part):
    print(part, flush=True)


async def tools(client):
    assert client.protocol_version == VERSION, client.protocol_version
    listed = (await client.list_tools()).tools
    again = (await client.list_tools(cache_mode="refresh")).tools
    assert [tool.name for tool in listed] == [tool.name for tool in again]
    by_name = {tool.name: tool for tool in listed}
    read = by_name["read"]
    assert read.annotations.read_only_hint is True, read
    assert by_name["write"].annotations.read_only_hint is False
    assert read.input_schema["type"] == "object"
    done("tools")


async def results(client):
    result = await client.call_tool("read", {"path": "a.txt"})
    assert not result.is_error and "alpha" in text(result), result
    kinds = [b.type for b in (await client.call_tool("test_multiple_content_types", {})).content]
    assert kinds == ["text", "image", "resource"], kinds

    # A failure is a result that a model can read.
    result = await client.call_tool("read", {"path": "missing.txt"})
    assert result.is_error and "[tool_error]" in text(result), result
    assert result.structured_content["error"]["category"] == "permanent_failure", result
    result = await client.call_tool("read", {"wrong": 1})
    assert result.is_error, result
    assert result.structured_content["error"]["category"] == "invalid_parameters", result
    try:
        await client.call_tool("no_such_tool", {})
        raise AssertionError("an unknown tool is an error of the protocol")
    except MCPError as error:
        assert error.code == -32602, error
    done("results")


async def progress(client):
    heard = []

    async def hear(progress, total, message):
        heard.append((progress, total))

    result = await client.call_tool("test_tool_with_progress", {}, progress_callback=hear)
    assert not result.is_error, result
    assert heard and heard == sorted(heard) and heard[-1] == (100, 100), heard
    done("progress")


async def overflow(client):
    result = await client.call_tool("read", {"path": "large.txt", "limit": 5000})
    assert not result.is_error, result
    links = [block.uri for block in result.content if block.type == "resource_link"]
    uri = links[0] if links else "overflow:" + text(result).split("overflow:")[1][:36]
    contents = (await client.read_resource(str(uri))).contents
    assert contents[0].text.count("line of a large file") == 5000, len(contents[0].text)
    try:
        await client.read_resource("overflow:00000000-0000-4000-8000-000000000000")
        raise AssertionError("there is no such resource")
    except MCPError as error:
        assert error.code in (-32602, -32002), error
    done("overflow")


def running(word):
    """Whether a process has this word in its command line."""
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as line:
                words = line.read().split(b"\0")
        except OSError:
            continue
        if word.encode() in words:
            return True
    return False


async def until(condition, what):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        await anyio.sleep(0.02)


async def cancellation(client):
    seconds = f"9{os.getpid()}"
    async with anyio.create_task_group() as group:

        async def call():
            await client.call_tool("bash", {"command": f"sleep {seconds}"})

        group.start_soon(call)
        await until(lambda: running(seconds), "the command does not start")
        group.cancel_scope.cancel()
    await until(lambda: not running(seconds), "the command outlives its call")
    result = await client.call_tool("read", {"path": "a.txt"})
    assert not result.is_error, result
    done("cancellation")


async def questions(client):
    result = await client.call_tool("test_input_required_result_elicitation", {})
    assert text(result) == "Hello, Ada!", result
    result = await client.call_tool("test_input_required_result_multi_round", {})
    assert text(result) == "Ada likes Ada", result
    done("questions")


async def approvals():
    ASKED.clear()
    async with Client(target(), mode=MODE, elicitation_callback=answering("accept")) as client:
        result = await client.call_tool("write", {"path": "approved.txt", "content": "yes"})
        assert not result.is_error, result
        assert any("approved.txt" in asked for asked in ASKED), ASKED
    async with Client(target(), mode=MODE, elicitation_callback=answering("decline")) as client:
        result = await client.call_tool("write", {"path": "declined.txt", "content": "no"})
        assert result.is_error, result
    async with Client(target(), mode=MODE) as client:
        result = await client.call_tool("write", {"path": "declined.txt", "content": "no"})
        assert result.is_error, result
        assert result.structured_content["error"]["category"] == "confirmation_required", result
        assert "zeph-host" in text(result) and "approve" in text(result), result
    done("approvals")


async def main():
    async with Client(target(), mode=MODE, elicitation_callback=answering("accept")) as client:
        await tools(client)
        await results(client)
        await progress(client)
        await overflow(client)
        await questions(client)
        await cancellation(client)
    await approvals()
    done("all")


anyio.run(main)
