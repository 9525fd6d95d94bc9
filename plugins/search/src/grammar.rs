//! The grammars of tree-sitter, as data.
//!
//! A grammar is published as C: tables, and two functions that read tokens. No compiler of C for WASM is asked for to build this
//! component: the build script compiles the grammars for the machine it runs on, and writes their tables down. The functions become
//! tables too ([`automaton`]); the hand-written scanners of five languages are ported in [`crate::scanner`]. The parser is tree-sitter's
//! own, translated to Rust by `c2rust`. `tests/grammars` compares the trees with those of the originals.

pub mod automaton;
pub mod format;
mod raw;

use std::sync::OnceLock;

use tree_sitter_c2rust::Language;

use crate::scanner::{Cpp, JavaScript, Python, Rust, Scanner, TypeScript};
use automaton::Automaton;
use format::{COUNTS, Part};
pub use raw::{ExternalScanner, RawLanguage, RawLexer};

/// Tables in memory, on a boundary that fits all of them.
#[repr(C, align(8))]
struct Aligned<B: ?Sized>(B);

/// A file of tables: [`format::COUNTS`] numbers, the offsets of [`format::PARTS`] parts and the end, then the parts; all little-endian.
#[derive(Debug, Clone, Copy)]
pub struct Tables(&'static [u8]);

impl Tables {
    fn number(self, index: usize) -> u32 {
        let bytes = self.0.get(index * 4..index * 4 + 4);
        bytes.map_or(0, |bytes| {
            u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
        })
    }

    /// The bytes of one part; they begin on a boundary of eight.
    pub fn part(self, part: Part) -> &'static [u8] {
        let from = self.number(COUNTS + part as usize) as usize;
        let to = self.number(COUNTS + part as usize + 1) as usize;
        self.0.get(from..to).unwrap_or_default()
    }

    fn at<T>(self, part: Part) -> *const T {
        let bytes = self.part(part);
        debug_assert!(bytes.is_empty() || bytes.as_ptr().cast::<T>().is_aligned());
        bytes.as_ptr().cast()
    }

    /// Pointers to the strings of one part, each of which ends with a zero.
    fn strings(self, part: Part, first: Option<*const u8>) -> *const *const u8 {
        let bytes = self.part(part);
        let strings = bytes.split_inclusive(|byte| *byte == 0).map(<[u8]>::as_ptr);
        let all: Vec<*const u8> = first.into_iter().chain(strings).collect();
        Box::leak(all.into_boxed_slice()).as_ptr()
    }
}

/// The same language, for the parser.
#[expect(unsafe_code, reason = "the parser takes its tables as C structs")]
fn as_language(raw: &'static RawLanguage) -> Language {
    // SAFETY: the layout is that of the parser's own struct, and it is never freed.
    unsafe { Language::from_raw(std::ptr::from_ref(raw).cast()) }
}

type LexFn = unsafe extern "C" fn(*mut RawLexer, u16) -> bool;

/// The language as the parser wants it; made once in a process.
#[expect(clippy::cast_possible_truncation, reason = "16 bits in the grammar")]
fn language(
    tables: Tables,
    lex: LexFn,
    keyword_lex: LexFn,
    scanner: ExternalScanner,
) -> RawLanguage {
    let has_keywords = !tables.part(Part::KeywordLexer).is_empty();
    RawLanguage {
        version: 14,
        symbol_count: tables.number(0),
        alias_count: tables.number(1),
        token_count: tables.number(2),
        external_token_count: tables.number(3),
        state_count: tables.number(4),
        large_state_count: tables.number(5),
        production_id_count: tables.number(6),
        field_count: tables.number(7),
        max_alias_sequence_length: tables.number(8) as u16,
        parse_table: tables.at(Part::ParseTable),
        small_parse_table: tables.at(Part::SmallParseTable),
        small_parse_table_map: tables.at(Part::SmallParseTableMap),
        parse_actions: tables.at(Part::ParseActions),
        symbol_names: tables.strings(Part::SymbolNames, None),
        field_names: tables.strings(Part::FieldNames, Some(std::ptr::null())),
        field_map_slices: tables.at(Part::FieldMapSlices),
        field_map_entries: tables.at(Part::FieldMapEntries),
        symbol_metadata: tables.at(Part::SymbolMetadata),
        public_symbol_map: tables.at(Part::PublicSymbolMap),
        alias_map: tables.at(Part::AliasMap),
        alias_sequences: tables.at(Part::AliasSequences),
        lex_modes: tables.at(Part::LexModes),
        lex_fn: Some(lex),
        keyword_lex_fn: has_keywords.then_some(keyword_lex),
        keyword_capture_token: tables.number(9) as u16,
        external_scanner: ExternalScanner {
            states: tables.at(Part::ExternalStates),
            symbol_map: tables.at(Part::ExternalSymbols),
            ..scanner
        },
        primary_state_ids: tables.at(Part::PrimaryStateIds),
    }
}

/// One grammar: its function, its tables, and the scanner that belongs to it.
macro_rules! grammars {
    ($($(#[$doc:meta])* $name:ident, $scanner:expr;)*) => {$(
        $(#[$doc])*
        pub fn $name() -> Language {
            static BYTES: &Aligned<[u8]> =
                &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".tables")));
            static LANGUAGE: OnceLock<RawLanguage> = OnceLock::new();
            static LEXERS: OnceLock<[Automaton; 2]> = OnceLock::new();
            fn lexers() -> &'static [Automaton; 2] {
                LEXERS.get_or_init(|| {
                    let tables = Tables(&BYTES.0);
                    [Part::Lexer, Part::KeywordLexer].map(|part| Automaton::new(tables.part(part)))
                })
            }
            extern "C" fn lex(lexer: *mut RawLexer, state: u16) -> bool {
                lexers()[0].run(lexer, state)
            }
            extern "C" fn lex_keywords(lexer: *mut RawLexer, state: u16) -> bool {
                lexers()[1].run(lexer, state)
            }
            let raw = LANGUAGE.get_or_init(|| language(Tables(&BYTES.0), lex, lex_keywords, $scanner));
            as_language(raw)
        }
    )*};
}

grammars! {
    /// The grammar of C.
    c, ExternalScanner::default();
    /// The grammar of C++.
    cpp, Cpp::functions();
    /// The grammar of Go.
    go, ExternalScanner::default();
    /// The grammar of Java.
    java, ExternalScanner::default();
    /// The grammar of JavaScript, JSX included.
    javascript, JavaScript::functions();
    /// The grammar of Python.
    python, Python::functions();
    /// The grammar of Rust.
    rust, Rust::functions();
    /// The grammar of TypeScript with JSX.
    tsx, TypeScript::functions();
    /// The grammar of TypeScript.
    typescript, TypeScript::functions();
}
