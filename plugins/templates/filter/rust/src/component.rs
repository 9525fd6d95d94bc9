//! Connects the strategies to the WIT interface. A new strategy needs no change here.

use self::bindings::exports::zeph::filter::strategies::{
    Confidence, Filtered, Guest, GuestStrategy, Input, Lines, Piece, Strategy, StrategyDefinition,
};
use crate::KINDS;

mod bindings {
    wit_bindgen::generate!({ path: "wit", world: "filter-plugin" });

    use super::Component;

    export!(Component);
}

struct Component;

struct Made(crate::Strategy);

impl Guest for Component {
    type Strategy = Made;

    fn list_strategies() -> Vec<StrategyDefinition> {
        let definition = |kind: &crate::Kind| StrategyDefinition {
            name: kind.name.to_owned(),
            description: kind.description.to_owned(),
            options: (kind.schema)(),
        };
        KINDS.iter().map(definition).collect()
    }
}

impl GuestStrategy for Made {
    fn create(name: String, options: String) -> Result<Strategy, String> {
        let kind = KINDS.iter().find(|kind| kind.name == name);
        let kind = kind.ok_or_else(|| format!("there is no strategy `{name}`"))?;
        Ok(Strategy::new(Self((kind.create)(&options)?)))
    }

    fn apply(&self, input: Input) -> Filtered {
        let selection = (self.0)(&input.text);
        let kept = selection.kept.into_iter().map(|range| {
            Piece::Keep(Lines {
                first: range.start as u32,
                count: range.len() as u32,
            })
        });
        let notes = selection.notes.into_iter().map(Piece::Note);
        Filtered {
            pieces: kept.chain(notes).collect(),
            confidence: match selection.is_known {
                true => Confidence::Full,
                false => Confidence::Fallback,
            },
            told: Vec::new(),
        }
    }
}
