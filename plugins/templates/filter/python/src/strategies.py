"""The resource `strategy` of wit/filter.wit. A new strategy needs no change here."""

import json
from typing import Self

from componentize_py_types import Err
from leave_out import TABLE
from wit_world import exports
from wit_world.exports.strategies import Confidence, Filtered, Input, Lines, Piece_Keep, Piece_Note


class Strategy(exports.strategies.Strategy):
    @classmethod
    def create(cls, name: str, options: str) -> Self:
        try:
            found = next((kind for kind in TABLE if kind.name == name), None)
            if found is None:
                raise ValueError(f"there is no strategy `{name}`")
            made = cls()
            made.select = found.create(json.loads(options or "{}"))
            return made
        except ValueError as error:
            # An exception is the error of `result<_, string>`.
            raise Err(str(error))

    def apply(self, input: Input) -> Filtered:
        selection = self.select(input.text)
        kept = [Piece_Keep(Lines(first, count)) for first, count in selection.kept]
        notes = [Piece_Note(note) for note in selection.notes]
        return Filtered([*kept, *notes], Confidence[selection.confidence.upper()], [])
