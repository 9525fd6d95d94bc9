"""Native MCP servers of each generation, without dependencies: `ends` and `silent` know the revisions with a handshake and no request
before it, `stateless` is one of the revisions without; `legacy` refuses what it does not know; `both` goes on in the generation it is
spoken to in first."""

import json
import os
import sys
import time

MODE = sys.argv[1]
SEEN = os.path.join(os.environ["HOME"], "seen")
DESCRIPTION = "Says what it is told. " * 400
PERSON = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"home": {"$ref": "#address"}},
    "$defs": {"address": {"$anchor": "address", "type": "object", "required": ["city"]}},
}
TOOLS = [
    {"name": "ask", "description": "Asks the user", "inputSchema": {"type": "object"}},
    {"name": "seen", "description": "Tells every request so far, of earlier runs too", "inputSchema": {"type": "object"}},
    {"name": "person", "description": DESCRIPTION, "inputSchema": PERSON},
    {"name": "late", "description": "Asks the user when there is a file `go`", "inputSchema": {"type": "object"}},
    {"name": "log", "description": "Logs something of each level", "inputSchema": {"type": "object"}},
    {"name": "client", "description": "Tells what the client can do", "inputSchema": {"type": "object"}},
    {"name": "echo", "description": "Says it again",
     "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
]
QUESTION = {
    "mode": "form", "message": "What is your name?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}
CAPABILITIES = {"tools": {}, "resources": {}, "prompts": {}, "logging": {}}
LEVELS = ["debug", "info", "warning", "error"]
LEVEL = ["warning"]
CLIENT = {}
SHAKEN = []


def stateless():
    return MODE == "stateless" or (MODE == "both" and not SHAKEN)


def complete():
    return {"resultType": "complete"} if stateless() else {}


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def content(text):
    return {"content": [{"type": "text", "text": text}], **complete()}


def asked(params, content=content):
    if stateless():
        answers = params.get("inputResponses")
        if answers is None:
            question = {"method": "elicitation/create", "params": QUESTION}
            return {"resultType": "input_required", "inputRequests": {"name": question}, "requestState": "one"}
        return content(json.dumps([params["requestState"], answers["name"]], sort_keys=True))
    send({"id": "q", "method": "elicitation/create", "params": QUESTION})
    while True:
        message = json.loads(sys.stdin.readline())
        if message.get("id") == "q":
            return content(json.dumps(message["result"], sort_keys=True))


def answer(method, params):
    if method == "initialize":
        CLIENT.update(params["capabilities"])
        SHAKEN.append(True)
    if method == "initialize" and MODE != "stateless":
        return {"protocolVersion": params["protocolVersion"], "capabilities": CAPABILITIES,
                "serverInfo": {"name": MODE, "version": "1"}}
    if method == "server/discover" and stateless():
        return {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES,
                "ttlMs": 0, "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": MODE, "version": "1"}}}
    if method == "tools/list":
        return {"tools": TOOLS, "ttlMs": 0, "cacheScope": "private", **complete()}
    if method in ("resources/list", "resources/templates/list", "prompts/list"):
        key = {"resources/list": "resources", "prompts/list": "prompts"}.get(method, "resourceTemplates")
        lists = {"prompts": [{"name": "bow" if os.path.exists("other") else "greet"}],
                 "resources": [{"uri": "note:new", "name": "new"}] if os.path.exists("more") else []}
        return {key: lists.get(key, []), "ttlMs": 0, "cacheScope": "private", **complete()}
    if method == "resources/read":
        if params["uri"] == "note:none":
            raise LookupError("there is no such note")
        if params["uri"] == "note:mine":
            return asked(params, lambda text: {"contents": [{"uri": "note:mine", "text": text}], "ttlMs": 0,
                                               "cacheScope": "private", **complete()})
        return {"contents": [{"uri": params["uri"], "text": "a note"}], "ttlMs": 0, "cacheScope": "private", **complete()}
    if method == "prompts/get":
        return {"messages": [{"role": "user", "content": {"type": "text", "text": "Hello."}}], **complete()}
    if method == "tools/call" and params["name"] == "seen":
        with open(SEEN, encoding="utf-8") as seen:
            return content(seen.read())
    if method == "logging/setLevel" and not stateless():
        LEVEL[0] = params["level"]
        return {}
    if method == "tools/call" and params["name"] == "log":
        level = params["_meta"].get("io.modelcontextprotocol/logLevel") if stateless() else LEVEL[0]
        for logged in LEVELS[LEVELS.index(level):] if level else []:
            send({"method": "notifications/message", "params": {"level": logged, "data": "logged"}})
        return content("logged")
    if method == "tools/call" and params["name"] == "client":
        return content(json.dumps(CLIENT.get("elicitation"), sort_keys=True))
    if method == "tools/call" and params["name"] == "late":
        while not os.path.exists("go"):
            time.sleep(0.02)
        return asked(params)
    if method == "tools/call":
        arguments = params.get("arguments") or {}
        return asked(params) if params["name"] == "ask" else content(json.dumps(arguments))
    return None


def main():
    has_begun = stateless()
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        with open(SEEN, "a", encoding="utf-8") as seen:
            seen.write(f"{method}\n")
        has_begun = has_begun or method == "initialize"
        if not has_begun and MODE == "ends":
            sys.exit("the first request has to be `initialize`")
        if "id" not in message or method is None or (not has_begun and MODE == "silent"):
            continue
        try:
            result = answer(method, message.get("params") or {})
        except LookupError as error:
            send({"id": message["id"], "error": {"code": -32602, "message": str(error)}})
            continue
        if result is None:
            send({"id": message["id"], "error": {"code": -32601, "message": f"unknown method {method}"}})
        else:
            send({"id": message["id"], "result": result})


main()
