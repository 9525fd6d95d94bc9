"""A server that repeats its secret wherever it can, in lines: `t` is its one tool."""

import json
import os
import sys

K = os.environ["K"]


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin:
    request = json.loads(line)
    result = {}
    if request.get("method") == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "logging": {}, "prompts": {}},
                  "serverInfo": {"name": "s " + K, "version": K, "title": K}, "instructions": "use " + K}
    elif request.get("method") == "tools/list":
        schema = {"type": "object", "properties": {"a": {"type": "string", "default": K}}}
        result = {"tools": [{"name": "t", "title": "T " + K, "description": "connected with " + K,
                             "inputSchema": schema, "_meta": {"k": K}}]}
    elif request.get("method") == "prompts/list":
        result = {"prompts": [{"name": "p", "description": K}]}
    elif request.get("method") == "tools/call":
        token = request["params"]["_meta"]["progressToken"]
        send({"method": "notifications/message", "params": {"level": "info", "logger": K, "data": K}})
        send({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1, "message": K}})
        result = {"content": [{"type": "text", "text": K}]}
    if "id" in request:
        send({"id": request["id"], "result": result})
