//! The end of an audit file that others wrote to: where the chain stands there, and whether the last line is whole.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::line::{ChainedLine, FileMark};
use crate::audit::code::{Code, NO_CODE, from_hex};

/// Bytes at the end that are looked at. Lines are shorter by far.
const TAIL_BYTES: u64 = 1 << 20;

/// Bytes at the end that are looked at first: the last two lines are nearly always among them, and each start of the program reads them.
const NEAR_BYTES: u64 = 16 << 10;

/// The newest line of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileLink {
    pub(super) seq: u64,
    pub(super) code: Code,
}

/// What stands before the first line.
pub(super) const NO_LINK: FileLink = FileLink {
    seq: 0,
    code: NO_CODE,
};

/// The end of a file.
#[derive(Debug)]
pub(super) struct FileTail {
    /// The newest line with a code; none when there is none near the end.
    pub(super) link: Option<FileLink>,
    /// That line and the code before it, to find out whose it is. Empty when it is the first.
    pub(super) last: Vec<u8>,
    pub(super) before: Option<Code>,
    /// What follows the last line end.
    pub(super) torn: Vec<u8>,
    /// Whether the whole of what was looked at is one line.
    pub(super) has_no_line: bool,
}

/// Reads the end of a file of `len` bytes.
pub(super) fn read(file: &File, len: u64) -> io::Result<FileTail> {
    let near = read_last(file, len, NEAR_BYTES)?;
    match near.before {
        // Nothing further up changes what the last two lines say.
        Some(_) => Ok(near),
        None => read_last(file, len, TAIL_BYTES),
    }
}

/// Reads the last `n_bytes` of a file of `len` bytes.
fn read_last(file: &File, len: u64, n_bytes: u64) -> io::Result<FileTail> {
    let from = len.saturating_sub(n_bytes);
    let mut bytes = vec![0; usize::try_from(len - from).unwrap_or(0)];
    file.read_exact_at(&mut bytes, from)?;
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    let torn = bytes.split_off(end.map_or(0, |end| end + 1));
    // The first piece may be the end of a line.
    let lines = bytes.split(|byte| *byte == b'\n');
    let (mut newest, mut before) = (None, None);
    for line in lines.skip(usize::from(from > 0)) {
        if let Some(parsed) = ChainedLine::parse(line) {
            before = newest.replace((line, parsed)).map(|(_, line)| line.code);
        }
    }
    Ok(FileTail {
        link: newest.map(|(_, line)| FileLink {
            seq: line.seq,
            code: line.code,
        }),
        last: newest.map_or_else(Vec::new, |(line, _)| line.to_owned()),
        before,
        has_no_line: end.is_none() && from > 0,
        torn,
    })
}

/// The first line of a file, when it is one of the chain itself, with its number.
pub(super) fn first_mark(path: &Path) -> io::Result<Option<(u64, FileMark)>> {
    let mut line = Vec::new();
    let file = File::open(path)?.take(TAIL_BYTES);
    BufReader::new(file).read_until(b'\n', &mut line)?;
    let line = ChainedLine::parse(line.strip_suffix(b"\n").unwrap_or(&line));
    Ok(line.and_then(|line| Some((line.seq, line.mark()?))))
}

/// The newest line of an older file, and what its first one says was removed before it.
pub(super) fn older(path: &Path) -> io::Result<Option<(FileLink, FileLink)>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let len = file.metadata()?.len();
    let Some(newest) = read(&file, len)?.link else {
        return Ok(None);
    };
    let removed = first_mark(path)?.and_then(|(seq, mark)| {
        Some(FileLink {
            seq: seq.checked_sub(1)?,
            code: from_hex(mark.previous.as_bytes())?,
        })
    });
    Ok(Some((newest, removed.unwrap_or(NO_LINK))))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::{NEAR_BYTES, TAIL_BYTES, read, read_last};
    use crate::audit::code::{CODE_BYTES, hex};

    /// A chained line of about `n_bytes`.
    fn line(seq: u8, n_bytes: u64) -> String {
        let text = "x".repeat(usize::try_from(n_bytes).unwrap());
        let code = hex(&[seq; CODE_BYTES]);
        format!("{{\"text\":\"{text}\",\"seq\":{seq},\"code\":\"{code}\"}}\n")
    }

    #[test]
    fn the_last_lines_are_found_wherever_they_begin() {
        let long = NEAR_BYTES + 100;
        for (lengths, torn) in [
            (vec![10, 10, 10], ""),
            (vec![long, 10, 10], "{\"torn"),
            (vec![10, long, 10], ""),
            (vec![10, 10, long], "{\"torn"),
            (vec![long, long, long], ""),
        ] {
            let mut file = tempfile::tempfile().unwrap();
            let n_lines = u8::try_from(lengths.len()).unwrap();
            for (seq, n_bytes) in (1..).zip(&lengths) {
                file.write_all(line(seq, *n_bytes).as_bytes()).unwrap();
            }
            file.write_all(torn.as_bytes()).unwrap();
            let len = file.metadata().unwrap().len();
            let (tail, whole) = (read(&file, len).unwrap(), read_last(&file, len, TAIL_BYTES));
            assert_eq!(tail.link, whole.unwrap().link, "{lengths:?}");
            assert_eq!(tail.link.unwrap().seq, u64::from(n_lines), "{lengths:?}");
            assert_eq!(tail.before, Some([n_lines - 1; CODE_BYTES]), "{lengths:?}");
            assert_eq!(tail.torn, torn.as_bytes(), "{lengths:?}");
        }
    }
}
