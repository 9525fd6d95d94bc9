//! The form of the tables, for the build script that writes them and for what reads them.

/// The parts of a file of tables, in their order in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in the parser")]
pub enum Part {
    ParseTable,
    SmallParseTable,
    SmallParseTableMap,
    ParseActions,
    SymbolNames,
    FieldNames,
    FieldMapSlices,
    FieldMapEntries,
    SymbolMetadata,
    PublicSymbolMap,
    AliasMap,
    AliasSequences,
    LexModes,
    ExternalStates,
    ExternalSymbols,
    PrimaryStateIds,
    Lexer,
    KeywordLexer,
}

/// How many numbers stand before the places of the parts.
pub const COUNTS: usize = 10;
/// How many parts there are.
pub const PARTS: usize = 18;

/// In an automaton: no token, no way on.
pub const NONE: u16 = u16::MAX;
/// Set in a way on: the character is no part of the token.
pub const SKIPS: u16 = 1 << 15;
/// The characters that have a row of their own in each state.
pub const PLAIN: usize = 128;
