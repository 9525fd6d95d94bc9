//! Files to search and to list: source-like text, the same on every machine.
//!
//! Made once below the target folder and kept; a corpus that was not finished is made anew.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::complain;
use crate::program::profile_dir;

/// To be raised when the generator changes, so that an older corpus is made anew.
const VERSION: &str = "1";

/// Bytes of all files of [`Corpus::source`]: the figure's 100 MB.
const SOURCE_BYTES: usize = 100_000_000;

/// Bytes of all files of [`Corpus::small`]: one call takes some milliseconds, and a thousand of them some seconds.
const SMALL_BYTES: usize = 2_000_000;

/// Bytes of a source file, from and to.
const FILE_BYTES: (usize, usize) = (2_000, 60_000);

/// Files of [`Corpus::tree`] and of [`Corpus::flat`].
const N_FILES: usize = 10_000;

/// Identifiers that end in it are planted in one line of about ten thousand.
pub(crate) const LITERAL: &str = "frobnicate_handle";

/// Matches planted calls, one line of about ten thousand.
pub(crate) const REGEX: &str = r"[a-z]+_(quux|corge)\(";

/// The folders the figures are measured on.
pub(crate) struct Corpus {
    /// 100 MB of source-like text in files of 2 to 60 KB.
    pub(crate) source: PathBuf,
    /// 2 MB of the same.
    pub(crate) small: PathBuf,
    /// 10,000 files in 200 directories.
    pub(crate) tree: PathBuf,
    /// 10,000 files in one directory.
    pub(crate) flat: PathBuf,
    /// A directory with one file of one line, `one.txt`.
    pub(crate) tiny: PathBuf,
}

impl Corpus {
    /// Finds the corpus below the target folder, or makes it.
    pub(crate) fn open() -> Result<Self> {
        let root = profile_dir("bench-corpus")?;
        let finished = root.join("version");
        let corpus = Self {
            source: root.join("source"),
            small: root.join("small"),
            tree: root.join("tree"),
            flat: root.join("flat"),
            tiny: root.join("tiny"),
        };
        if fs::read_to_string(&finished).is_ok_and(|version| version == VERSION) {
            return Ok(corpus);
        }
        complain("Making the corpus, once.");
        if root.exists() {
            fs::remove_dir_all(&root)
                .with_context(|| format!("cannot remove `{}`", root.display()))?;
        }
        write_source(&corpus.source, SOURCE_BYTES)?;
        write_source(&corpus.small, SMALL_BYTES)?;
        for file_idx in 0..N_FILES {
            let dir = corpus
                .tree
                .join(format!("part_{:02}", file_idx % 20))
                .join(format!("group_{}", file_idx / 20 % 10));
            write(
                &dir.join(format!("file_{file_idx:05}.rs")),
                "fn main() {}\n",
            )?;
            write(
                &corpus.flat.join(format!("file_{file_idx:05}.rs")),
                "fn main() {}\n",
            )?;
        }
        write(&corpus.tiny.join("one.txt"), "one line\n")?;
        write(&finished, VERSION)?;
        Ok(corpus)
    }
}

fn write_source(dir: &Path, bytes: usize) -> Result<()> {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let mut written = 0;
    let mut file_idx = 0;
    while written < bytes {
        let file_bytes = FILE_BYTES.0 + dice.below(FILE_BYTES.1 - FILE_BYTES.0);
        let text = source_text(&mut dice, file_bytes.min(bytes - written));
        let suffix = ["rs", "py", "js", "c"][file_idx % 4];
        let folder = dir.join(format!("module_{:02}", file_idx % 50));
        write(
            &folder.join(format!(
                "{}_{file_idx:04}.{suffix}",
                WORDS[file_idx % WORDS.len()]
            )),
            &text,
        )?;
        written += text.len();
        file_idx += 1;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    let at = || format!("cannot write `{}`", path.display());
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).with_context(at)?;
    }
    fs::write(path, text).with_context(at)
}

/// At least `bytes` of lines as a programmer writes them: blocks, assignments, calls, comments and blank lines.
fn source_text(dice: &mut Dice, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 200);
    let mut depth = 0;
    while text.len() < bytes {
        let indent = "    ".repeat(depth);
        let [a, b, c, d] = std::array::from_fn(|_| dice.pick(&WORDS));
        let n = dice.below(4096);
        let line = match dice.below(100) {
            _ if dice.below(10_000) == 0 => format!("{indent}let {a} = {b}_{LITERAL}({c});"),
            _ if dice.below(10_000) == 0 => format!("{indent}{a}.{b}_quux({c}, {n});"),
            0..12 => String::new(),
            12..25 => {
                format!("{indent}// The {a} of the {b} is {c} unless the {d} says otherwise.")
            }
            25..32 if depth < 5 => {
                depth += 1;
                format!("{indent}fn {a}_{b}({c}: &{d}, limit: usize) -> Option<{d}> {{")
            }
            32..40 if depth < 5 => {
                depth += 1;
                format!("{indent}if {a}.{b}() > {n} && {c} != {d} {{")
            }
            40..56 if depth > 0 => {
                depth -= 1;
                format!("{}}}", "    ".repeat(depth))
            }
            56..76 => format!("{indent}let {a}_{b} = {c}.{d}({n});"),
            76..90 => format!("{indent}{a}.{b}_{c}(&{d}, \"{a} {b}\");"),
            _ => format!("{indent}return {a}_{b}({c}, {n:#x});"),
        };
        writeln!(text, "{line}").expect("bug: writing to a string cannot fail");
    }
    text
}

const WORDS: [&str; 40] = [
    "account", "buffer", "cache", "channel", "client", "config", "context", "cursor", "decoder",
    "entry", "error", "event", "field", "filter", "frame", "header", "index", "input", "item",
    "key", "label", "layer", "limit", "matcher", "node", "offset", "output", "packet", "parser",
    "queue", "record", "request", "schema", "session", "source", "stream", "table", "token",
    "value", "worker",
];

/// A small deterministic generator (xorshift64*).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number from 0 to `bound` - 1.
    fn below(&mut self, bound: usize) -> usize {
        let high = usize::try_from(self.next() >> 33).expect("bug: 31 bits fit");
        high % bound
    }

    fn pick(&mut self, words: &[&'static str]) -> &'static str {
        words[self.below(words.len())]
    }
}
