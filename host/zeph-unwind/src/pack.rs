//! Packing the tables of a finished program: an ELF file for Linux on a machine of 64 bits that stores the least significant byte first.

use std::io;
use std::ops::Range;

use object::LittleEndian;
use object::elf::{
    FileHeader64, PF_R, PT_GNU_EH_FRAME, PT_LOAD, ProgramHeader64, SHT_NOBITS, SectionHeader64,
};
use object::pod::{from_bytes_mut, slice_from_bytes_mut};
use object::read::elf::FileHeader as _;

use crate::columns;
use crate::{HEAD_BYTES, INDEX_BYTES, INDEX_FORM, MAGIC};

/// The sections that are tables for unwinding.
const TABLES: [&[u8]; 3] = [b".gcc_except_table", b".eh_frame_hdr", b".eh_frame"];

/// What tables end with: an entry of no length.
const END: [u8; 4] = [0; 4];

const LE: LittleEndian = LittleEndian;

type File = FileHeader64<LittleEndian>;
type Segment = ProgramHeader64<LittleEndian>;
type Section = SectionHeader64<LittleEndian>;

/// Why the tables of a program cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// It is another kind of file, or damaged.
    #[error("the program is not a 64-bit ELF file: {0}")]
    NotAProgram(#[from] object::Error),
    /// It has none, or other sections stand among them.
    #[error(
        "the program has no read-only segment that ends with `.eh_frame_hdr` and the other tables for unwinding"
    )]
    NoTables,
    /// The compressor failed.
    #[error("the tables for unwinding cannot be compressed")]
    Compress(#[source] io::Error),
}

/// The program with its tables packed; `level` is that of zstd.
///
/// Errors: [`PackError`] when it is another kind of file, or its tables are not together at the end of a segment.
pub fn pack(program: &[u8], level: i32) -> Result<Vec<u8>, PackError> {
    let (tables, page) = place(program)?;
    let unpacked = &program[tables.clone()];
    let mut packed = packed(unpacked, level)?;
    // What follows is mapped, so it moves by whole pages.
    let n_removed = unpacked.len().saturating_sub(packed.len()) / page * page;
    packed.resize(unpacked.len() - n_removed, 0);
    let mut made = program.to_vec();
    shorten(&mut made, &tables, packed.len()).ok_or(PackError::NoTables)?;
    made.splice(tables, packed);
    Ok(made)
}

/// The head and the packed tables.
fn packed(tables: &[u8], level: i32) -> Result<Vec<u8>, PackError> {
    let index = empty_index(tables).ok_or(PackError::NoTables)?;
    let columns = columns::split(tables).ok_or(PackError::NoTables)?;
    let body = zstd::bulk::compress(&columns, level).map_err(PackError::Compress)?;
    let lengths = [body.len(), tables.len()].map(|n_bytes| (n_bytes as u64).to_le_bytes());
    let packed = [&index[..], &MAGIC, &lengths.concat(), &body].concat();
    debug_assert_eq!(packed.len() - body.len(), HEAD_BYTES);
    Ok(packed)
}

/// An index without entries, of tables that begin with the zero that ends these. None when they have another form, or no end.
fn empty_index(tables: &[u8]) -> Option<[u8; INDEX_BYTES]> {
    let has_form = tables.starts_with(&INDEX_FORM) && tables.ends_with(&END);
    // Counted from the field itself.
    let to_end = tables.len().checked_sub(END.len() + INDEX_FORM.len())?;
    let to_end = i32::try_from(to_end).ok().filter(|_| has_form)?;
    let mut index = [0; INDEX_BYTES];
    index[..4].copy_from_slice(&INDEX_FORM);
    index[4..8].copy_from_slice(&to_end.to_le_bytes());
    Some(index)
}

/// Where the tables are in the file, from their index to the end of their segment; and the size of the pages in which it is mapped.
fn place(program: &[u8]) -> Result<(Range<usize>, usize), PackError> {
    let file = File::parse(program)?;
    let segments = file.program_headers(LE, program)?;
    let start = segments
        .iter()
        .find(|segment| segment.p_type.get(LE) == PT_GNU_EH_FRAME);
    let start = start.ok_or(PackError::NoTables)?.p_offset.get(LE);
    let loaded = segments.iter().find(|segment| is_cut_to(segment, start));
    let end = loaded.map(end_in_file).ok_or(PackError::NoTables)?;
    let sections = file.sections(LE, program)?;
    for section in sections.iter() {
        let offset = section.sh_offset.get(LE);
        let is_inside = section.sh_type.get(LE) != SHT_NOBITS && (start..end).contains(&offset);
        if is_inside && !TABLES.contains(&sections.section_name(LE, section)?) {
            return Err(PackError::NoTables);
        }
    }
    let alignments = segments.iter().filter(|segment| is_loaded(segment));
    let page = alignments.map(|segment| segment.p_align.get(LE)).max();
    let numbers = [start, end, page.unwrap_or(1)].map(usize::try_from);
    match numbers {
        [Ok(start), Ok(end), Ok(page)] if end <= program.len() => Ok((start..end, page.max(1))),
        _ => Err(PackError::NoTables),
    }
}

fn is_loaded(segment: &Segment) -> bool {
    segment.p_type.get(LE) == PT_LOAD
}

/// Whether the tables from `start` on are in this segment, which nothing writes to and whose memory all comes from the file.
fn is_cut_to(segment: &Segment, start: u64) -> bool {
    let holds = (segment.p_offset.get(LE)..end_in_file(segment)).contains(&start);
    let is_constant = segment.p_flags.get(LE) == PF_R;
    let is_whole = segment.p_filesz.get(LE) == segment.p_memsz.get(LE);
    is_loaded(segment) && holds && is_constant && is_whole
}

fn end_in_file(segment: &Segment) -> u64 {
    segment
        .p_offset
        .get(LE)
        .saturating_add(segment.p_filesz.get(LE))
}

/// Corrects the headers of a program whose tables are about to take `n_kept` bytes of the file. None when it is damaged.
fn shorten(program: &mut [u8], tables: &Range<usize>, n_kept: usize) -> Option<()> {
    let (start, end, n_kept) = (tables.start as u64, tables.end as u64, n_kept as u64);
    let n_removed = end - start - n_kept;
    let moved = |offset: u64| match offset >= end {
        true => offset - n_removed,
        false => offset,
    };
    let (file, _) = from_bytes_mut::<File>(program).ok()?;
    let segments_at = usize::try_from(file.e_phoff.get(LE)).ok()?;
    let n_segments = usize::from(file.e_phnum.get(LE));
    let sections_at = usize::try_from(file.e_shoff.get(LE)).ok()?;
    let n_sections = usize::from(file.e_shnum.get(LE));
    file.e_shoff.set(LE, moved(file.e_shoff.get(LE)));

    let headers = program.get_mut(segments_at..)?;
    let (segments, _) = slice_from_bytes_mut::<Segment>(headers, n_segments).ok()?;
    for segment in segments {
        let offset = segment.p_offset.get(LE);
        if offset < end && end_in_file(segment) > start {
            let n_bytes = (start + n_kept).checked_sub(offset)?;
            segment.p_filesz.set(LE, n_bytes);
            // That of the index names the section that holds what is packed, which tools compare.
            let n_in_memory = segment.p_memsz.get(LE).max(n_bytes);
            segment.p_memsz.set(LE, n_in_memory);
        }
        segment.p_offset.set(LE, moved(offset));
    }
    let headers = program.get_mut(sections_at..)?;
    let (sections, _) = slice_from_bytes_mut::<Section>(headers, n_sections).ok()?;
    for section in sections {
        let offset = section.sh_offset.get(LE);
        match (start..end).contains(&offset) {
            true => set_apart(section, offset - start, n_kept),
            false => section.sh_offset.set(LE, moved(offset)),
        }
    }
    Some(())
}

/// The section of the index holds what is packed, and the others what is left of their place in memory: so tools that copy a program by
/// its sections keep it whole. `before` is how far into the tables the section began.
fn set_apart(section: &mut Section, before: u64, n_kept: u64) {
    let n_bytes = section.sh_size.get(LE);
    if before == 0 {
        section.sh_size.set(LE, n_kept);
        return;
    }
    let n_taken = n_kept.saturating_sub(before).min(n_bytes);
    section.sh_type.set(LE, SHT_NOBITS);
    section.sh_size.set(LE, n_bytes - n_taken);
    section.sh_addr.set(LE, section.sh_addr.get(LE) + n_taken);
    let index_at = section.sh_offset.get(LE) - before;
    section.sh_offset.set(LE, index_at + n_kept);
}
