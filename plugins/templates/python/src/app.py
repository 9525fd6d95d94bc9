"""Connects the tools to the WIT interface. A new tool needs no change here."""

import json
from typing import Iterator

from componentize_py_types import Err
from tools import TOOLS, Tool, ToolError
from wit_world import exports
from wit_world.imports import context, log, progress, types, walk


class Host:
    """The host, as tools see it."""

    def __init__(self, frame: types.CallContext) -> None:
        self.context = frame
        #: The context of the call: `host.call.remaining()` in milliseconds, `host.call.turn()`, `.goal()`, `.caller()`, …
        self.call = context

    def progress(self, message: str, completed: int | None = None, total: int | None = None) -> None:
        """Reports the progress of a long call to the user."""
        progress.report(message, completed, total)

    def log(self, level: str, message: str) -> None:
        """Writes to the operator's log, which the model never sees. `level` is `trace`, `debug`, `info`, `warn` or `error`."""
        log.write(log.Level[level.upper()], message)

    def settings(self) -> dict:
        """The settings from `[plugins.settings.PLUGIN_NAME]` of the host's configuration."""
        return json.loads(context.settings())

    def walk(self, root: str, only: list[str], skip: list[str]) -> Iterator[str]:
        """The files below a directory, relative to it. `only` and `skip` are globs; files ignored by .gitignore are omitted."""
        options = walk.Options(max_depth=None, only=only, skip=skip, standard_filters=True, sizes=False)
        try:
            walker = walk.Walker.open(root, options)
            while entries := walker.next(1000):
                yield from (entry.path for entry in entries if entry.kind == walk.EntryKind.FILE)
        except Err as error:
            raise ToolError("policy-blocked", f"`{root}`: {error.value}")


class Tools(exports.Tools):
    def list_tools(self) -> list[types.ToolDefinition]:
        return [definition(tool) for tool in TOOLS]

    def call_tool(self, name: str, arguments: str, context: types.CallContext) -> types.Outcome:
        try:
            tool = next((tool for tool in TOOLS if tool.name == name), None)
            if tool is None:
                raise ToolError("permanent-failure", f"this plugin has no tool `{name}`")
            text = tool.run(json.loads(arguments), Host(context))
        except ToolError as error:
            raise failure(error.category, str(error))
        except ModuleNotFoundError as error:
            raise failure("permanent-failure", f"{error}: import it at the top of a file in src/, so that the build includes it")
        except Exception as error:
            raise failure("permanent-failure", f"{type(error).__name__}: {error}")
        return types.Outcome_Done(types.ToolOutput([types.Content_Text(text)], None, []))


def definition(tool: Tool) -> types.ToolDefinition:
    return types.ToolDefinition(
        name=tool.name,
        title=None,
        description=tool.description,
        parameters=json.dumps(tool.parameters),
        output=None,
        kind=types.ToolKind[tool.kind.upper()],
        annotations=types.Annotations(
            read_only=tool.read_only,
            destructive=not tool.read_only,
            idempotent=tool.read_only,
            open_world=not tool.read_only,
        ),
    )


def failure(category: str, message: str) -> Err:
    """An exception is the error of `result<_, tool-error>`."""
    category = types.ErrorCategory[category.upper().replace("-", "_")]
    return Err(types.ToolError(category, message, None, None))
