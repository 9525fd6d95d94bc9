//! Tables for unwinding, rearranged so that they pack to half of what they would: each kind of number in a column of its own, addresses as
//! the distance from the one before, and without the index, which follows from the rest.
//!
//! The tables are an index, perhaps others (`.gcc_except_table`), and records (`.eh_frame`). Only the numbers are moved that stand in fixed
//! places of all records; where one of them is something else, it comes back as it was.
//! Source: the Linux Standard Base, `.eh_frame` and `.eh_frame_hdr`.

use crate::INDEX_BYTES;

/// Bytes of an entry of the index: where a function begins, and its record, counted from the index.
const ENTRY_BYTES: usize = 8;

/// In the place of the description that a record of a function refers to: it is a description itself.
const DESCRIPTION: u32 = u32::MAX;

/// What stands before the language's own data of a record, if it has any: its length.
const WITH_DATA: u8 = 4;

/// The tables in columns.
#[derive(Default)]
struct Columns {
    /// Of each record, its bytes without the length itself.
    lengths: Vec<u32>,
    /// Of each record, where the description is that it refers to, counted from the first record.
    descriptions: Vec<u32>,
    /// Of each function, how far it begins behind the end of the one before.
    starts: Vec<u32>,
    /// Of each function, its length.
    sizes: Vec<u32>,
    /// Of each function that has any, how far its data are behind those of the one before.
    data: Vec<u32>,
    /// What stands between the index and the records, and all of the records that is in no column.
    rest: Vec<u8>,
}

/// What is known of the functions before.
#[derive(Default)]
struct Before {
    end: u32,
    data: u32,
}

/// The tables, rearranged. None when they have another form.
pub(crate) fn split(tables: &[u8]) -> Option<Vec<u8>> {
    let records_at = records_at(tables)?;
    let mut columns = Columns::default();
    let index_end = INDEX_BYTES + ENTRY_BYTES * index_of(number(tables, 8)?)?;
    columns.rest.extend(tables.get(index_end..records_at)?);
    let n_between = columns.rest.len();
    let mut before = Before::default();
    let mut at = records_at;
    while number(tables, at)? != 0 {
        at = columns.take(tables, records_at, at, &mut before)?;
    }
    let mut parts = tables.get(..INDEX_BYTES)?.to_vec();
    let counted = [
        columns.lengths.len(),
        columns.starts.len(),
        columns.data.len(),
        n_between,
    ];
    for count in counted {
        parts.extend(u32::try_from(count).ok()?.to_le_bytes());
    }
    let Columns {
        lengths,
        descriptions,
        starts,
        sizes,
        data,
        rest,
    } = columns;
    for column in [lengths, descriptions, starts, sizes, data] {
        for place in 0..4 {
            parts.extend(column.iter().map(|number| number.to_le_bytes()[place]));
        }
    }
    parts.extend(rest);
    // A form that is not met exactly is none.
    (join(&parts, tables.len())? == tables).then_some(parts)
}

impl Columns {
    /// Takes the record at `at`, and returns where the next one is.
    fn take(
        &mut self,
        tables: &[u8],
        records_at: usize,
        at: usize,
        before: &mut Before,
    ) -> Option<usize> {
        let length = number(tables, at)?;
        let end = at.checked_add(4)?.checked_add(index_of(length)?)?;
        let up = number(tables, at + 4)?;
        self.lengths.push(length);
        if up == 0 {
            self.descriptions.push(DESCRIPTION);
            self.rest.extend(tables.get(at + 8..end)?);
            return Some(end);
        }
        let description = (at + 4)
            .checked_sub(records_at)?
            .checked_sub(index_of(up)?)?;
        self.descriptions.push(u32::try_from(description).ok()?);
        let start = number(tables, at + 8)?.wrapping_add(u32::try_from(at + 8).ok()?);
        let size = number(tables, at + 12)?;
        self.starts.push(start.wrapping_sub(before.end));
        self.sizes.push(size);
        before.end = start.wrapping_add(size);
        let n_data = *tables.get(at + 16)?;
        self.rest.push(n_data);
        let mut next = at + 17;
        if n_data == WITH_DATA {
            let data = number(tables, next)?.wrapping_add(u32::try_from(next).ok()?);
            self.data.push(data.wrapping_sub(before.data));
            before.data = data;
            next += 4;
        }
        self.rest.extend(tables.get(next..end)?);
        Some(end)
    }
}

/// The tables, of `n_bytes`, out of what [`split`] made of them. None when it did not make it.
pub(crate) fn join(parts: &[u8], n_bytes: usize) -> Option<Vec<u8>> {
    let mut parts = Parts(parts);
    let head = parts.bytes(INDEX_BYTES)?;
    let mut counts = [0; 4];
    for count in &mut counts {
        *count = index_of(number(parts.bytes(4)?, 0)?)?;
    }
    let [n_records, n_functions, n_data, n_between] = counts;
    let mut lengths = parts.column(n_records)?;
    let mut descriptions = parts.column(n_records)?;
    let mut starts = parts.column(n_functions)?;
    let mut sizes = parts.column(n_functions)?;
    let mut data = parts.column(n_data)?;

    let n_entries = index_of(number(head, 8)?)?;
    let mut tables = Vec::with_capacity(n_bytes);
    tables.extend(head);
    tables.resize(INDEX_BYTES + ENTRY_BYTES.checked_mul(n_entries)?, 0);
    tables.extend(parts.bytes(n_between)?);
    let records_at = tables.len();
    let mut entries = Vec::with_capacity(n_functions);
    let mut before = Before::default();
    for _ in 0..n_records {
        let at = tables.len();
        let (length, description) = (lengths.next()?, descriptions.next()?);
        tables.extend(length.to_le_bytes());
        let end = at.checked_add(4)?.checked_add(index_of(length)?)?;
        if description == DESCRIPTION {
            tables.extend([0; 4]);
        } else {
            let up = (at + 4)
                .checked_sub(records_at)?
                .checked_sub(index_of(description)?)?;
            tables.extend(u32::try_from(up).ok()?.to_le_bytes());
            let (start, size) = (starts.next()?.wrapping_add(before.end), sizes.next()?);
            before.end = start.wrapping_add(size);
            put_distance(&mut tables, start)?;
            tables.extend(size.to_le_bytes());
            entries.push((start, u32::try_from(at).ok()?));
            let n_data = *parts.bytes(1)?.first()?;
            tables.push(n_data);
            if n_data == WITH_DATA {
                before.data = data.next()?.wrapping_add(before.data);
                put_distance(&mut tables, before.data)?;
            }
        }
        tables.extend(parts.bytes(end.checked_sub(tables.len())?)?);
    }
    tables.extend([0; 4]);
    put_index(&mut tables, entries, n_entries)?;
    (tables.len() == n_bytes && parts.0.is_empty()).then_some(tables)
}

/// Appends how far `place`, which is counted from the index, is from where this stands.
fn put_distance(tables: &mut Vec<u8>, place: u32) -> Option<()> {
    let here = u32::try_from(tables.len()).ok()?;
    tables.extend(place.wrapping_sub(here).to_le_bytes());
    Some(())
}

/// Fills the index with the functions in the order of their places, each place once.
fn put_index(tables: &mut [u8], mut entries: Vec<(u32, u32)>, n_entries: usize) -> Option<()> {
    entries.sort_by_key(|(start, _)| *start);
    entries.dedup_by_key(|(start, _)| *start);
    let index = tables.get_mut(INDEX_BYTES..)?;
    let places = index.chunks_exact_mut(ENTRY_BYTES);
    for (place, (start, record)) in places.take(n_entries).zip(entries) {
        place[..4].copy_from_slice(&start.to_le_bytes());
        place[4..].copy_from_slice(&record.to_le_bytes());
    }
    Some(())
}

/// Where the records are, counted from the index, which says how far they are from there.
fn records_at(tables: &[u8]) -> Option<usize> {
    index_of(number(tables, 4)?)?.checked_add(4)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

fn index_of(number: u32) -> Option<usize> {
    usize::try_from(number).ok()
}

/// What is not read yet.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn bytes(&mut self, n_bytes: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(n_bytes)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Numbers, of which first the lowest bytes of all stand there, and the highest last.
    fn column(&mut self, n_numbers: usize) -> Option<impl Iterator<Item = u32> + use<'a>> {
        let [a, b, c, d] = [(); 4].map(|()| self.bytes(n_numbers));
        let bytes = [a?, b?, c?, d?];
        Some((0..n_numbers).map(move |it| u32::from_le_bytes(bytes.map(|bytes| bytes[it]))))
    }
}
