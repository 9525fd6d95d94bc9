//! Pieces of an answer, and where they may be cut.

use serde_json::Value;

use super::scenario::CutPlace;

/// What a piece is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PieceKind {
    /// Nothing of what follows.
    Frame,
    Text,
    Arguments,
    /// What says how the answer ended, and all after it.
    End,
}

/// A piece.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) kind: PieceKind,
    pub(super) bytes: String,
}

impl Piece {
    /// An event with a name.
    pub(super) fn event(name: &str, data: &Value) -> Self {
        Self::frame(format!("event: {name}\ndata: {data}\n\n"))
    }

    /// An event without a name.
    pub(super) fn data(data: &Value) -> Self {
        Self::frame(format!("data: {data}\n\n"))
    }

    /// A line.
    pub(super) fn line(data: &Value) -> Self {
        Self::frame(format!("{data}\n"))
    }

    pub(super) fn of(self, kind: PieceKind) -> Self {
        Self { kind, ..self }
    }

    fn frame(bytes: String) -> Self {
        Self {
            kind: PieceKind::Frame,
            bytes,
        }
    }
}

/// A document in two pieces.
pub(super) fn halves(document: &str) -> Vec<Piece> {
    let pieces = split(document).map(|half| Piece::frame(half.to_owned()));
    let [first, second] = pieces;
    vec![first, second.of(PieceKind::End)]
}

/// A text in two halves.
pub(super) fn split(text: &str) -> [&str; 2] {
    let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
    [first, second]
}

/// Takes off what comes after a place.
pub(super) fn cut(pieces: &mut Vec<Piece>, within: CutPlace, streams: bool) {
    let first = |kind: PieceKind| pieces.iter().position(|piece| piece.kind == kind);
    let kept = match within {
        CutPlace::Text if streams => first(PieceKind::Text).map(|at| at + 1),
        CutPlace::Arguments if streams => first(PieceKind::Arguments).map(|at| at + 1),
        _ => first(PieceKind::End),
    };
    pieces.truncate(kept.unwrap_or(1));
}
