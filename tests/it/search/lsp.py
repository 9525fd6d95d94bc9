"""An MCP server in front of a language server that does not exist: it answers from what a test put into its environment.

`WORK` is the workspace. `MODE` is how it behaves: `honest`, `outside` (places that no search may show), `prose` (places in
sentences), `hang` or `garbage`.
"""

import json
import os
import sys
import time

MODE = os.environ["MODE"]
WORK = os.environ["WORK"]


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def place(path, line, end=None):
    start = {"line": line, "character": 1}
    return {"uri": f"file://{path}", "range": {"start": start, "end": {"line": end or line, "character": 2}}}


def outside():
    return [
        place("/etc/passwd", 1),
        place(f"{WORK}/../outside.rs", 1),
        place(f"{WORK}/secret/keys.rs", 1),
        place(f"{WORK}/link.rs", 1),
        place(f"{WORK}/src/main.rs", 4_000_000),
        place(f"{WORK}/src/none.rs", 1),
        {"uri": "https://example.com/a.rs", "line": 1},
        {"uri": "file://elsewhere/src/main.rs", "line": 1},
        {"path": "src/main.rs", "line": 0},
    ]


def answer(name, arguments):
    if MODE == "hang":
        time.sleep(3600)
    if MODE == "garbage":
        return "\u0000{[ not json: 12"
    if MODE == "outside":
        return json.dumps({"locations": outside()})
    if MODE == "prose":
        if name == "find.symbols":
            return f"Found 1 symbol(s) matching:\n\n• auth_layer (Function) at {WORK}/src/auth.rs:2:8"
        return f"Results for auth_layer (function) at {WORK}/src/auth.rs:2:8:\n{WORK}/src/main.rs:3:14"
    if name == "find.symbols":
        found = [place(f"{WORK}/src/auth.rs", 2)] if arguments == {"query": "auth_layer"} else []
        return json.dumps([{"name": "auth_layer", "location": one} for one in found])
    wanted = {"file_path": f"{WORK}/src/auth.rs", "line": 2, "character": 8}
    if name == "references" and arguments == wanted:
        return json.dumps({"locations": [place(f"{WORK}/src/main.rs", 3), place(f"{WORK}/src/notes.rs", 1)]})
    return json.dumps({"locations": [], "asked": arguments})


TAKES = {
    "find.symbols": {"query": {"type": "string"}},
    "references": {"file_path": {"type": "string"}, "line": {"type": "integer"}, "character": {"type": "integer"}},
}
READS = {"readOnlyHint": True, "openWorldHint": False}
TOOLS = [
    {"name": name, "description": "Finds code.", "inputSchema": {"type": "object", "properties": takes}, "annotations": READS}
    for name, takes in TAKES.items()
]

for line in sys.stdin:
    request = json.loads(line)
    method, number = request.get("method"), request.get("id")
    if method == "initialize":
        result = {
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "lsp", "version": "1.0.0"},
        }
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call":
        said = answer(request["params"]["name"], request["params"].get("arguments") or {})
        result = {"content": [{"type": "text", "text": said}]}
    elif method == "ping":
        result = {}
    elif number is None:
        continue
    else:
        send({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "no such method"}})
        continue
    send({"jsonrpc": "2.0", "id": number, "result": result})
