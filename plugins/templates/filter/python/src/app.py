"""The exports of the component: the list of strategies; strategies.py implements them."""

import json

from leave_out import TABLE
from wit_world import exports
from wit_world.exports.strategies import StrategyDefinition


class Strategies(exports.Strategies):
    def list_strategies(self) -> list[StrategyDefinition]:
        return [StrategyDefinition(kind.name, kind.description, json.dumps(kind.options)) for kind in TABLE]
