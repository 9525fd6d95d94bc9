"""A native MCP server of the revisions with a handshake, without dependencies: tools, resources, prompts, completions, log messages,
progress, and questions to the user."""

import json
import os
import sys
import urllib.request

VARIANT = sys.argv[1] if len(sys.argv) > 1 else ""
LOG_LEVELS = ["debug", "info", "notice", "warning", "error"]
state = {"level": "warning", "id": 0, "tools": "first"}


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def notify(method, params):
    send({"method": method, "params": params})


def receive():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def ask(method, params):
    state["id"] += 1
    send({"id": f"s{state['id']}", "method": method, "params": params})
    while True:
        message = receive()
        if message.get("id") == f"s{state['id']}" and "method" not in message:
            return message.get("result")


def tool(name, description, properties=None, **more):
    schema = {"type": "object", "properties": properties or {}}
    return {"name": name, "description": description, "inputSchema": schema, **more}


QUESTION = {"message": "What is your name?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}
TEXT = {"text": {"type": "string", "description": "What to say"}}


def tools():
    described = "Says it again" if VARIANT != "changed" else "Says it again, and more"
    all_tools = [
        tool("echo", described, TEXT, title="Echo", annotations={"readOnlyHint": True, "title": "Echo"}),
        tool("sum.up", "Adds two numbers", {"a": {"type": "number"}, "b": {"type": "number"}},
             outputSchema={"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]}),
        tool("read", "Reads a file", {"path": {"type": "string"}}),
        tool("variable", "Reads a variable", {"name": {"type": "string"}}),
        tool("count", "Counts, and tells how far it is", {"to": {"type": "integer"}}),
        tool("ask", "Asks the user"),
        tool("leave", "Asks the user, and goes on without an answer"),
        tool("withdraw", "Asks the user, and does not want to know any more"),
        tool("log", "Logs something", TEXT),
        tool("wait", "Waits until it is cancelled"),
        tool("long", "Prints much", {"lines": {"type": "integer"}}),
        tool("fail", "Fails"),
        tool("visit", "Reads a page", {"url": {"type": "string"}}),
        tool("crash", "Ends the server"),
        tool("other", "Offers other tools from now on"),
    ]
    if state["tools"] == "second":
        all_tools.append(tool("new", "Was not there before"))
    return all_tools


def content(text, **more):
    return {"content": [{"type": "text", "text": text}], **more}


def call(request, params):
    name, given = params["name"], params.get("arguments") or {}
    token = (params.get("_meta") or {}).get("progressToken")
    if name == "echo":
        return content(given["text"])
    if name == "sum.up":
        result = {"sum": given["a"] + given["b"]}
        return content(json.dumps(result), structuredContent=result)
    if name == "read":
        try:
            with open(given["path"], encoding="utf-8") as file:
                return content(file.read())
        except OSError as error:
            print(f"cannot read: {error}", file=sys.stderr, flush=True)
            return content(str(error), isError=True)
    if name == "variable":
        return content(os.environ.get(given["name"], "(none)"))
    if name == "count":
        for step in range(1, given["to"] + 1):
            if token is not None:
                notify("notifications/progress",
                       {"progressToken": token, "progress": step, "total": given["to"], "message": f"step {step}"})
        return content("counted")
    if name == "ask":
        return content(json.dumps(ask("elicitation/create", QUESTION), sort_keys=True))
    if name in ("leave", "withdraw"):
        send({"id": name, "method": "elicitation/create", "params": QUESTION})
        serve_one()
        if name == "withdraw":
            notify("notifications/cancelled", {"requestId": name})
            serve_one()
        return content("went on")
    if name == "log":
        notify("notifications/message", {"level": "error", "logger": "native", "data": given["text"]})
        return content("logged")
    if name == "wait":
        while True:
            message = receive()
            if message.get("method") == "notifications/cancelled" and message["params"]["requestId"] == request:
                print("cancelled", file=sys.stderr, flush=True)
                return None
    if name == "long":
        return content("".join(f"line {n} of a long text\n" for n in range(given["lines"])))
    if name == "fail":
        return content("it did not work", isError=True)
    if name == "visit":
        try:
            with urllib.request.urlopen(given["url"], timeout=10) as page:
                return content(page.read(1000).decode("utf-8", "replace"))
        except OSError as error:
            return content(str(error), isError=True)
    if name == "crash":
        sys.exit(3)
    if name == "other":
        state["tools"] = "second"
        notify("notifications/tools/list_changed", {})
        return content("changed")
    raise LookupError(f"unknown tool {name}")


def complete(params):
    value = params["argument"]["value"]
    values = [word for word in ["alpha", "beta", "bravo"] if word.startswith(value)]
    return {"completion": {"values": values, "total": len(values), "hasMore": False}}


def answer(request, method, params):
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}, "resources": {"subscribe": True, "listChanged": True},
                             "prompts": {"listChanged": True}, "completions": {}, "logging": {}},
            "serverInfo": {"name": "native", "title": "Native server", "version": "7.1"},
            "instructions": "Use echo first.",
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": tools()}
    if method == "tools/call":
        return call(request, params)
    if method == "resources/list":
        return {"resources": [{"uri": "note:one", "name": "one", "mimeType": "text/plain"}]}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"uriTemplate": "note:{name}", "name": "notes"}]}
    if method == "resources/read":
        secret = os.environ.get("HUB_TOKEN", "")
        return {"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": f"the note {params['uri']} {secret}"}]}
    if method == "resources/subscribe":
        notify("notifications/resources/updated", {"uri": params["uri"]})
        return {}
    if method == "resources/unsubscribe":
        return {}
    if method == "prompts/list":
        return {"prompts": [{"name": "greet", "description": "A greeting", "arguments": [{"name": "who", "required": True}]}]}
    if method == "prompts/get":
        text = f"Greet {params['arguments']['who']}."
        return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
    if method == "completion/complete":
        return complete(params)
    if method == "logging/setLevel":
        state["level"] = params["level"]
        return {}
    raise LookupError(f"unknown method {method}")


def serve_one():
    """Answers the next request."""
    message = receive()
    while "id" not in message or "method" not in message:
        message = receive()
    try:
        result = answer(message["id"], message["method"], message.get("params") or {})
    except LookupError as error:
        send({"id": message["id"], "error": {"code": -32601, "message": str(error)}})
        return
    if result is not None:
        send({"id": message["id"], "result": result})


def main():
    if VARIANT == "needs":
        path = sys.argv[2]
        with open(path, encoding="utf-8"):
            pass
    while True:
        serve_one()


main()
