"""What the component exports: the list of strategies here, the strategies themselves in strategies.py."""

import json

from leave_out import TABLE
from wit_world import exports
from wit_world.exports.strategies import StrategyDefinition


class Strategies(exports.Strategies):
    def list_strategies(self) -> list[StrategyDefinition]:
        return [StrategyDefinition(kind.name, kind.description, json.dumps(kind.options)) for kind in TABLE]
