//! The tables of a grammar, out of its struct.

use crate::automaton;
use crate::format::{COUNTS, PARTS};
use crate::raw::RawLanguage;

/// The file of tables of a grammar, of which `text` is the `parser.c`.
pub(crate) fn of(raw: &RawLanguage, text: &str) -> Vec<u8> {
    let parts = parts(raw, text);
    let mut bytes = Vec::new();
    for count in counts(raw) {
        bytes.extend(count.to_le_bytes());
    }
    let mut offset = (COUNTS + PARTS + 1) * 4;
    for part in &parts {
        offset = offset.next_multiple_of(8);
        bytes.extend(u32::try_from(offset).unwrap().to_le_bytes());
        offset += part.len().next_multiple_of(8);
    }
    bytes.extend(u32::try_from(offset).unwrap().to_le_bytes());
    for part in parts {
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.extend(part);
    }
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

fn counts(raw: &RawLanguage) -> [u32; COUNTS] {
    [
        raw.symbol_count,
        raw.alias_count,
        raw.token_count,
        raw.external_token_count,
        raw.state_count,
        raw.large_state_count,
        raw.production_id_count,
        raw.field_count,
        raw.max_alias_sequence_length.into(),
        raw.keyword_capture_token.into(),
    ]
}

/// `count` elements at `at`.
fn slice<T>(at: *const T, count: usize) -> &'static [T] {
    match at.is_null() {
        true => &[],
        // SAFETY: the grammar has as many.
        false => unsafe { std::slice::from_raw_parts(at, count) },
    }
}

fn shorts<const N: usize>(all: &[[u16; N]]) -> Vec<u8> {
    all.iter()
        .flatten()
        .flat_map(|short| short.to_le_bytes())
        .collect()
}

fn plain_shorts(all: &[u16]) -> Vec<u8> {
    all.iter().flat_map(|short| short.to_le_bytes()).collect()
}

/// Strings, each with its zero; those without a text are empty.
fn strings(at: *const *const u8, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for string in slice(at, count) {
        if !string.is_null() {
            // SAFETY: strings of C.
            let string = unsafe { std::ffi::CStr::from_ptr(string.cast()) };
            bytes.extend(string.to_bytes());
        }
        bytes.push(0);
    }
    bytes
}

fn parts(raw: &RawLanguage, text: &str) -> [Vec<u8>; PARTS] {
    let symbols = (raw.symbol_count + raw.alias_count) as usize;
    let states = raw.state_count as usize;
    let large = slice(
        raw.parse_table,
        (raw.large_state_count * raw.symbol_count) as usize,
    );
    let map = slice(
        raw.small_parse_table_map,
        (raw.state_count - raw.large_state_count) as usize,
    );
    let small = small_parse_table(raw, map);
    let slices = slice(raw.field_map_slices, raw.production_id_count as usize);
    let modes = slice(raw.lex_modes, states);
    let lexers = automaton::of(text);
    [
        plain_shorts(large),
        plain_shorts(small),
        map.iter().flat_map(|place| place.to_le_bytes()).collect(),
        shorts(parse_actions(raw, large, small, map)),
        strings(raw.symbol_names, symbols),
        match raw.field_count {
            0 => Vec::new(),
            // SAFETY: the first is null.
            count => strings(unsafe { raw.field_names.add(1) }, count as usize),
        },
        shorts(slices),
        shorts(slice(raw.field_map_entries, reach(slices))),
        slice(raw.symbol_metadata, symbols).concat(),
        plain_shorts(slice(raw.public_symbol_map, symbols)),
        plain_shorts(alias_map(raw)),
        plain_shorts(slice(
            raw.alias_sequences,
            raw.production_id_count as usize * usize::from(raw.max_alias_sequence_length),
        )),
        shorts(modes),
        external_states(raw, modes),
        plain_shorts(slice(
            raw.external_scanner.symbol_map,
            raw.external_token_count as usize,
        )),
        plain_shorts(slice(raw.primary_state_ids, states)),
        lexers.main,
        lexers.keywords,
    ]
}

fn reach(slices: &[[u16; 2]]) -> usize {
    let ends = slices
        .iter()
        .map(|[index, length]| usize::from(index + length));
    ends.max().unwrap_or(0)
}

/// A state in the small table: the number of groups, then for each its value, the number of symbols, and the symbols.
fn small_end(raw: &RawLanguage, from: usize) -> usize {
    // SAFETY: the table goes on to the end of the last state.
    let at = |index: usize| usize::from(unsafe { *raw.small_parse_table.add(index) });
    let mut index = from + 1;
    for _ in 0..at(from) {
        index += 2 + at(index + 1);
    }
    index
}

fn small_parse_table(raw: &RawLanguage, map: &[u32]) -> &'static [u16] {
    let ends = map.iter().map(|from| small_end(raw, *from as usize));
    slice(raw.small_parse_table, ends.max().unwrap_or(0))
}

/// The actions up to the last one that a table names.
fn parse_actions(
    raw: &RawLanguage,
    large: &[u16],
    small: &[u16],
    map: &[u32],
) -> &'static [[u16; 4]] {
    let tokens = raw.token_count as usize;
    let rows = large.chunks(raw.symbol_count as usize);
    let mut used: Vec<u16> = rows.flat_map(|row| row[..tokens].to_vec()).collect();
    for from in map {
        let mut index = *from as usize + 1;
        for _ in 0..small[*from as usize] {
            if usize::from(small[index + 2]) < tokens {
                used.push(small[index]);
            }
            index += 2 + usize::from(small[index + 1]);
        }
    }
    let last = used.into_iter().max().unwrap_or(0);
    // SAFETY: an index that the tables name.
    let [head, ..] = unsafe { *raw.parse_actions.add(usize::from(last)) };
    slice(
        raw.parse_actions,
        usize::from(last) + 1 + usize::from(head & 0xFF),
    )
}

/// Symbol, number of aliases, aliases; a zero ends it.
fn alias_map(raw: &RawLanguage) -> &'static [u16] {
    // SAFETY: up to the zero.
    let at = |index: usize| unsafe { *raw.alias_map.add(index) };
    let mut index = 0;
    while at(index) != 0 {
        index += 2 + usize::from(at(index + 1));
    }
    slice(raw.alias_map, index + 1)
}

fn external_states(raw: &RawLanguage, modes: &[[u16; 2]]) -> Vec<u8> {
    let rows = modes.iter().map(|[_, external]| usize::from(*external) + 1);
    let count = rows.max().unwrap_or(0) * raw.external_token_count as usize;
    let states = slice(raw.external_scanner.states, count);
    states.iter().map(|valid| u8::from(*valid)).collect()
}
