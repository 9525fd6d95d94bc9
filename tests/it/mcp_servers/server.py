"""An MCP server without dependencies, one message a line, that behaves as it is told to.

`MODE` says how it behaves as a whole; some tools misbehave by themselves. `DEFINITIONS` is a file of JSON that is merged into the first
tool, so that a test can change what the server says about itself.
"""

import json
import os
import sys
import time

MODE = os.environ.get("MODE", "")
N_TOOLS = int(os.environ.get("N_TOOLS", "0"))


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def tool(name, description, properties=None, **more):
    schema = {"type": "object", "properties": properties or {}}
    return {"name": name, "description": description, "inputSchema": schema, **more}


TEXT = {"text": {"type": "string"}}
PATH = {"path": {"type": "string"}}

TOOLS = [
    tool("echo", "Gives back what it is given.", TEXT, annotations={"readOnlyHint": True, "openWorldHint": False}),
    tool("files.read", "Reads a file.", PATH),
    tool("write", "Writes a file.", {**PATH, **TEXT}),
    tool("variable", "Gives back a variable.", TEXT),
    tool("crash", "Ends the process."),
    tool("hang", "Never answers."),
    tool("flood", "Gives back a hundred megabytes."),
    tool("garbage", "Prints garbage before its answer."),
    tool("other_id", "Answers another request before this one."),
    tool("grow", "Offers another tool from now on."),
    tool("daemon", "Leaves a process behind."),
    tool("ask", "Asks the client for things.", {"method": {"type": "string"}}),
    tool("fail", "Says that it failed."),
    tool("slow", "Reports progress."),
]


def definitions():
    path = os.environ.get("DEFINITIONS")
    tools = [dict(one) for one in TOOLS]
    if path and os.path.exists(path):
        with open(path) as file:
            tools[0].update(json.load(file))
    tools += [tool(f"many_{number}", "One of many.") for number in range(N_TOOLS)]
    if MODE == "deceptive":
        tools[0]["description"] = "Good.\u202e\u200b" + "x" * 1_000_000
    return tools


def text(request, content, **more):
    result = {"content": [{"type": "text", "text": content}], **more}
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def read_answer(wanted):
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == wanted:
            return message
    return {}


def call(request):
    name = request["params"]["name"]
    arguments = request["params"].get("arguments") or {}
    if name == "echo":
        text(request, arguments.get("text", ""))
    elif name == "files.read":
        try:
            with open(arguments["path"]) as file:
                text(request, file.read())
        except OSError as error:
            print(f"cannot read: {error}", file=sys.stderr, flush=True)
            text(request, f"no: {error}", isError=True)
    elif name == "write":
        try:
            with open(arguments["path"], "w") as file:
                file.write(arguments["text"])
            text(request, "written")
        except OSError as error:
            text(request, f"no: {error}", isError=True)
    elif name == "variable":
        text(request, os.environ.get(arguments["text"], "unset"))
    elif name == "crash":
        print("about to crash", file=sys.stderr, flush=True)
        os._exit(3)
    elif name == "hang":
        time.sleep(3600)
    elif name == "flood":
        text(request, "x" * 100_000_000)
    elif name == "garbage":
        sys.stdout.write("this is no message\n\x00\xff{]\n")
        sys.stdout.flush()
        text(request, "after garbage")
    elif name == "other_id":
        send({"jsonrpc": "2.0", "id": 987654, "result": {"content": []}})
        text(request, "the right one")
    elif name == "grow":
        TOOLS.append(tool("new", "Was not there before."))
        text(request, "grown")
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    elif name == "daemon":
        if os.fork() == 0:
            os.setsid()
            os.close(0)
            time.sleep(3600)
        text(request, "left")
    elif name == "ask":
        send({"jsonrpc": "2.0", "id": "mine", "method": arguments["method"], "params": {"message": "?", "messages": [], "maxTokens": 1, "requestedSchema": {"type": "object", "properties": {}}}})
        text(request, json.dumps(read_answer("mine")))
    elif name == "fail":
        text(request, "it did not work out", isError=True)
    elif name == "slow":
        token = (request["params"].get("_meta") or {}).get("progressToken")
        for step in range(3):
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": step, "total": 3, "message": f"step {step}"}})
        text(request, "done")
    elif name == "new" or name.startswith("many_"):
        text(request, "here")
    else:
        send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32602, "message": "no such tool"}})


def answer(request):
    method = request.get("method")
    if method == "initialize":
        if MODE == "hang":
            time.sleep(3600)
        result = {
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}, "prompts": {}},
            "serverInfo": {"name": "misbehaving", "version": "1.2.3"},
            "instructions": "Be gentle.",
        }
        send({"jsonrpc": "2.0", "id": request["id"], "result": result})
    elif method == "tools/list":
        send({"jsonrpc": "2.0", "id": request["id"], "result": {"tools": definitions()}})
    elif method == "prompts/list":
        prompt = {"name": "greet", "description": "Says hello."}
        send({"jsonrpc": "2.0", "id": request["id"], "result": {"prompts": [prompt]}})
    elif method == "tools/call":
        call(request)
    elif "id" in request and method:
        send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": f"no method {method}"}})


if MODE == "exit":
    print("there is something wrong with me", file=sys.stderr, flush=True)
    sys.exit(7)
for line in sys.stdin:
    answer(json.loads(line))
