"""The strategies: pure functions that select lines of an output, tested without WebAssembly."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class Selection:
    """The selected part of an output."""

    kept: list[tuple[int, int]]
    """Ranges of lines to keep, counted from 0: first and count."""
    notes: list[str]
    """Notes of the strategy, shown after the selected lines."""
    confidence: str
    """`full`, `partial` or `fallback`; with `fallback`, the output is shown unchanged."""


@dataclass(frozen=True)
class StrategyKind:
    """A named strategy."""

    name: str
    description: str
    options: dict[str, Any]
    create: Callable[[dict[str, Any]], Callable[[str], Selection]]
    """Raises ValueError with one sentence if the options are invalid."""


def leave_out(options: dict[str, Any]) -> Callable[[str], Selection]:
    """Omits lines that begin with one of the given words."""
    for name in options:
        if name != "begins":
            raise ValueError(f"there is no option `{name}`")
    begins = options.get("begins")
    if not isinstance(begins, list) or not begins or not all(isinstance(word, str) and word for word in begins):
        raise ValueError("`begins` is a list of words")
    words = tuple(begins)

    def apply(text: str) -> Selection:
        lines = text.split("\n")
        if lines[-1] == "":
            lines.pop()
        kept: list[tuple[int, int]] = []
        left_out = 0
        for idx, line in enumerate(lines):
            if line.startswith(words):
                left_out += 1
            elif kept and sum(kept[-1]) == idx:
                kept[-1] = (kept[-1][0], kept[-1][1] + 1)
            else:
                kept.append((idx, 1))
        # The strategy is not meant for an output without such lines: the host shows it unchanged.
        return Selection(kept, [f"{left_out} {'line' if left_out == 1 else 'lines'} omitted"], "full" if left_out else "fallback")

    return apply


TABLE = [
    StrategyKind(
        name="leave_out",
        description="Leaves out lines that begin with one of the given words, and says how many there were.",
        options={
            "type": "object",
            "required": ["begins"],
            "additionalProperties": False,
            "properties": {
                "begins": {
                    "type": "array",
                    "items": {"type": "string", "minLength": 1},
                    "minItems": 1,
                    "description": "The words.",
                },
            },
        },
        create=leave_out,
    ),
]
