"""The tools: each has a description for the model and a function.

This file does not depend on WebAssembly, so that tests can run it in plain Python; the second argument of a function provides access
to the host.
"""

import os
from dataclasses import dataclass
from typing import Callable


class ToolError(Exception):
    """The error of a failed call: a category from wit/ and one plain sentence for the model."""

    def __init__(self, category: str, message: str) -> None:
        super().__init__(message)
        self.category = category


@dataclass
class Tool:
    """An entry of the table at the end."""

    name: str
    description: str
    #: `read`, `edit`, `delete`, `move`, `search`, `execute`, `fetch`, `think` or `other`.
    kind: str
    #: JSON Schema of the arguments.
    parameters: dict
    run: Callable
    #: Changes nothing and stays within the granted directories. Other tools need the user's approval.
    read_only: bool = False


def words(text: str) -> int:
    return len(text.split())


def counted(number: int) -> str:
    return f"{number} {'word' if number == 1 else 'words'}"


def count_words(arguments: dict, host) -> str:
    return counted(words(arguments["text"]))


def count_file(arguments: dict, host) -> str:
    path = arguments["path"]
    host.progress(f"reading {path}")
    try:
        with open(path, encoding="utf-8") as file:
            return counted(words(file.read()))
    except PermissionError:
        raise ToolError("policy-blocked", f"`{path}` may not be read")
    except FileNotFoundError:
        raise ToolError("permanent-failure", f"`{path}` does not exist or is outside the granted directories")


def count_tree(arguments: dict, host) -> str:
    root = arguments["path"]
    only = host.settings().get("only", "*.md *.txt")
    # Set only if the operator has granted the variable.
    skip = os.environ.get("WORDS_SKIP", "")
    total = 0
    for path in host.walk(root, only.split(), skip.split()):
        with open(f"{root}/{path}", encoding="utf-8", errors="replace") as file:
            total += words(file.read())
    return counted(total)


def one_string(name: str, description: str) -> dict:
    """The schema of arguments with one string."""
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": description}},
        "required": [name],
        "additionalProperties": False,
    }


TOOLS = [
    Tool(
        name="TOOL_PREFIX_words",
        description="Counts the words of a text. Use it to judge whether a text fits.",
        kind="other",
        parameters=one_string("text", "The text to count."),
        run=count_words,
        read_only=True,
    ),
    Tool(
        name="TOOL_PREFIX_file",
        description="Counts the words of a text file.",
        kind="read",
        parameters=one_string("path", "The file to count, as an absolute path."),
        run=count_file,
        read_only=True,
    ),
    Tool(
        name="TOOL_PREFIX_tree",
        description="Counts the words of all text files below a directory.",
        kind="search",
        parameters=one_string("path", "The directory whose files to count, as an absolute path."),
        run=count_tree,
        read_only=True,
    ),
]
