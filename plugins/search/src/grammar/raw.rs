//! What the parser reads, in the layout of its C header (`tree_sitter/parser.h`, version 14 of the interface).
#![expect(
    unsafe_code,
    reason = "the parser takes its tables as C structs; all that is said here about them is checked by `tests/grammars`"
)]

use std::ffi::c_void;

/// The characters as a function of a grammar sees them.
#[derive(Debug)]
#[repr(C)]
pub struct RawLexer {
    /// The next character; 0 at the end.
    pub lookahead: i32,
    /// Which token was read.
    pub result_symbol: u16,
    /// Goes to the next character; `true`: what was passed is no part of the token.
    pub advance: unsafe extern "C" fn(*mut RawLexer, bool),
    /// Ends the token here.
    pub mark_end: unsafe extern "C" fn(*mut RawLexer),
    /// The column, in characters.
    pub get_column: unsafe extern "C" fn(*mut RawLexer) -> u32,
    /// Whether a range of the text begins here that is to be read.
    pub is_at_included_range_start: unsafe extern "C" fn(*const RawLexer) -> bool,
    /// Whether nothing is left.
    pub eof: unsafe extern "C" fn(*const RawLexer) -> bool,
}

/// The functions of a hand-written scanner, and which tokens it may return in which state.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "named as in the header")]
pub struct ExternalScanner {
    pub states: *const bool,
    pub symbol_map: *const u16,
    pub create: Option<unsafe extern "C" fn() -> *mut c_void>,
    pub destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    pub scan: Option<unsafe extern "C" fn(*mut c_void, *mut RawLexer, *const bool) -> bool>,
    pub serialize: Option<unsafe extern "C" fn(*mut c_void, *mut u8) -> u32>,
    pub deserialize: Option<unsafe extern "C" fn(*mut c_void, *const u8, u32)>,
}

impl Default for ExternalScanner {
    fn default() -> Self {
        Self {
            states: std::ptr::null(),
            symbol_map: std::ptr::null(),
            create: None,
            destroy: None,
            scan: None,
            serialize: None,
            deserialize: None,
        }
    }
}

/// A grammar.
#[derive(Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "named as in the header")]
pub struct RawLanguage {
    pub version: u32,
    pub symbol_count: u32,
    pub alias_count: u32,
    pub token_count: u32,
    pub external_token_count: u32,
    pub state_count: u32,
    pub large_state_count: u32,
    pub production_id_count: u32,
    pub field_count: u32,
    pub max_alias_sequence_length: u16,
    pub parse_table: *const u16,
    pub small_parse_table: *const u16,
    pub small_parse_table_map: *const u32,
    pub parse_actions: *const [u16; 4],
    pub symbol_names: *const *const u8,
    pub field_names: *const *const u8,
    pub field_map_slices: *const [u16; 2],
    pub field_map_entries: *const [u16; 2],
    pub symbol_metadata: *const [u8; 3],
    pub public_symbol_map: *const u16,
    pub alias_map: *const u16,
    pub alias_sequences: *const u16,
    pub lex_modes: *const [u16; 2],
    pub lex_fn: Option<unsafe extern "C" fn(*mut RawLexer, u16) -> bool>,
    pub keyword_lex_fn: Option<unsafe extern "C" fn(*mut RawLexer, u16) -> bool>,
    pub keyword_capture_token: u16,
    pub external_scanner: ExternalScanner,
    pub primary_state_ids: *const u16,
}

// SAFETY: the pointers lead to tables that live as long as the program and are never written.
unsafe impl Send for RawLanguage {}
// SAFETY: as above.
unsafe impl Sync for RawLanguage {}
