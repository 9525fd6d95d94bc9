//! The contract in terms of the strategies.

use zeph_strategies as native;

use self::bindings::exports::zeph::filter::strategies::{
    Confidence, Filtered, Guest, GuestStrategy, Input, Lines, Piece, Strategy, StrategyDefinition,
};

mod bindings {
    //! Generated from `wit/zeph-filter`. No logic.

    wit_bindgen::generate!({
        path: "../../wit/zeph-filter",
        world: "filter-plugin",
    });

    export!(Component);

    use super::Component;
}

struct Component;

/// One of the nine with its options.
struct Made(Box<dyn native::Strategy>);

impl Guest for Component {
    type Strategy = Made;

    fn list_strategies() -> Vec<StrategyDefinition> {
        let definitions = native::STRATEGIES.iter();
        let listed = definitions.map(|definition| StrategyDefinition {
            name: definition.name.to_owned(),
            description: definition.description.to_owned(),
            options: (definition.schema)(),
        });
        listed.collect()
    }
}

impl GuestStrategy for Made {
    fn create(name: String, options: String) -> Result<Strategy, String> {
        let made = native::create(&name, &options)?;
        Ok(Strategy::new(Self(made)))
    }

    fn apply(&self, input: Input) -> Filtered {
        let lines: Vec<&str> = input.text.lines().collect();
        let selection = self.0.apply(&native::Input {
            command: &input.command,
            exit_code: input.exit_code,
            lines: &lines,
        });
        Filtered {
            pieces: selection.pieces.into_iter().map(piece).collect(),
            confidence: match selection.confidence {
                native::Confidence::Full => Confidence::Full,
                native::Confidence::Partial => Confidence::Partial,
                native::Confidence::Fallback => Confidence::Fallback,
            },
            told: selection.told.into_iter().map(number).collect(),
        }
    }
}

fn piece(piece: native::Piece) -> Piece {
    match piece {
        native::Piece::Keep(range) => Piece::Keep(Lines {
            first: number(range.start),
            count: number(range.len()),
        }),
        native::Piece::Note(note) => Piece::Note(note),
    }
}

/// Numbers of lines in a memory of 32 bits have 32 bits.
fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
