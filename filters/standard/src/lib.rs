//! The nine filter strategies as one component: the contract of `wit/zeph-filter` over `zeph-strategies`.
//!
//! It converts and nothing else. In a native build it is empty.

#![cfg(target_family = "wasm")]
#![expect(unsafe_code, reason = "the binding generator's code")]

#[allow(warnings, reason = "the binding generator's code")]
mod bindings {
    wit_bindgen::generate!({ path: "../../wit/zeph-filter", world: "filter-plugin" });
}

use bindings::exports::zeph::filter::strategies::{
    Confidence, Filtered, Guest, GuestStrategy, Input, Lines, Piece, Strategy, StrategyDefinition,
};

struct Component;

/// A strategy with its options.
struct Made(Box<dyn zeph_strategies::Strategy>);

impl Guest for Component {
    type Strategy = Made;

    fn list_strategies() -> Vec<StrategyDefinition> {
        let definitions = zeph_strategies::STRATEGIES.iter();
        definitions
            .map(|definition| StrategyDefinition {
                name: definition.name.to_owned(),
                description: definition.description.to_owned(),
                options: (definition.schema)(),
            })
            .collect()
    }
}

impl GuestStrategy for Made {
    fn create(name: String, options: String) -> Result<Strategy, String> {
        let strategy = zeph_strategies::create(&name, &options)?;
        Ok(Strategy::new(Self(strategy)))
    }

    fn apply(&self, input: Input) -> Filtered {
        let lines = zeph_strategies::Lines::of(&input.text);
        let selection = self.0.apply(&zeph_strategies::Input {
            command: &input.command,
            exit_code: input.exit_code,
            lines: &lines,
        });
        let zeph_strategies::Selection {
            pieces,
            confidence,
            told,
        } = selection;
        Filtered {
            pieces: pieces.into_iter().map(piece).collect(),
            confidence: match confidence {
                zeph_strategies::Confidence::Full => Confidence::Full,
                zeph_strategies::Confidence::Partial => Confidence::Partial,
                zeph_strategies::Confidence::Fallback => Confidence::Fallback,
            },
            told: told.into_iter().flatten().map(number).collect(),
        }
    }
}

fn piece(piece: zeph_strategies::Piece) -> Piece {
    match piece {
        zeph_strategies::Piece::Note(note) => Piece::Note(note),
        zeph_strategies::Piece::Keep(range) => Piece::Keep(Lines {
            first: number(range.start),
            count: number(range.len()),
        }),
    }
}

/// Lines are counted in the memory of a guest, which holds fewer than 2^32 bytes.
fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

bindings::export!(Component with_types_in bindings);
