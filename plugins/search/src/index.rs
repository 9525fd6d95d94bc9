//! What was read of a directory tree, as one file in the plugin's own folder.
//!
//! The file is read whole, and never trusted: a number that does not fit ends the reading, and the index is made anew. It is replaced
//! by a rename, so that two calls, or a call that is killed, leave one of the two states and nothing between.

mod bytes;

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::outline::Outline;
use bytes::{Reader, number, text};

/// Another number for every change of the format or of what is read out of a file.
const FORMAT: u64 = 2;
const MAGIC: &[u8; 8] = b"zephsrch";

/// An index of one directory tree.
#[derive(Debug, Default)]
pub struct Index {
    /// Every word and name, by its number.
    pub strings: Vec<String>,
    numbers: HashMap<String, u32>,
    /// The files, in the order of their paths.
    pub files: Vec<IndexedFile>,
}

/// One file in the index.
#[derive(Debug, Clone)]
pub struct IndexedFile {
    /// Below the tree's top.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Milliseconds since the Unix epoch.
    pub modified_ms: u64,
    /// Of its content.
    pub hash: u64,
    /// Whether a program seems to have written it.
    pub is_generated: bool,
    body: Vec<u8>,
}

/// A part of a file, as it is kept.
#[derive(Debug, Clone, Copy)]
pub struct UnitHead {
    /// The first line, from 0.
    pub start: u32,
    /// The last line.
    pub end: u32,
    /// The number of the name it defines.
    pub name: Option<u32>,
    /// The number of the kind of thing it is.
    pub kind: u32,
    /// How many words it has.
    pub length: u32,
    /// Of its text: what its vector is kept under.
    pub key: u128,
}

/// The hash of a content.
pub fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// The file of the index of `top`, in `folder`.
pub fn file_of(folder: &Path, top: &Path) -> PathBuf {
    let digest = hash(top.to_string_lossy().as_bytes());
    folder.join(format!("{digest:016x}.index"))
}

impl Index {
    /// The index kept in `file`; an empty one when there is none, it is damaged, or another version wrote it.
    pub fn load(file: &Path) -> Self {
        let Ok(bytes) = std::fs::read(file) else {
            return Self::default();
        };
        read(&bytes).unwrap_or_default()
    }

    /// Keeps it in `file`.
    ///
    /// Errors: nothing can be written there; what was there is still there.
    pub fn save(&mut self, file: &Path) -> io::Result<()> {
        self.forget();
        sweep(file.parent().unwrap_or(file));
        let beside = file.with_extension(format!("{:016x}.new", unique()));
        let written = std::fs::write(&beside, self.bytes());
        written
            .and_then(|()| std::fs::rename(&beside, file))
            .inspect_err(|_| drop(std::fs::remove_file(&beside)))
    }

    /// Empties the strings that no file has any more: what may not be read any longer is not kept either.
    fn forget(&mut self) {
        let used: Vec<Cell<bool>> = vec![Cell::new(false); self.strings.len()];
        let mark = |number: u32| {
            if let Some(used) = used.get(number as usize) {
                used.set(true);
            }
        };
        for file in &self.files {
            file.scan(
                |unit, words| {
                    if let Some(name) = unit.name {
                        mark(name);
                        mark(unit.kind);
                    }
                    words.iter().for_each(|(word, _)| mark(*word));
                },
                |name, _| mark(name),
            );
        }
        for (string, used) in self.strings.iter_mut().zip(&used) {
            if !used.get() {
                string.clear();
            }
        }
        self.numbers.clear();
    }

    /// The number of a string; a new one when it has none.
    fn number(&mut self, string: &str) -> u32 {
        if self.numbers.is_empty() {
            let numbered = (0..).zip(&self.strings);
            self.numbers = numbered
                .map(|(number, string)| (string.clone(), number))
                .collect();
        }
        if let Some(number) = self.numbers.get(string) {
            return *number;
        }
        let number = u32::try_from(self.strings.len()).unwrap_or(u32::MAX);
        self.strings.push(string.to_owned());
        self.numbers.insert(string.to_owned(), number);
        number
    }

    /// What is kept of a file that was read.
    pub fn body(&mut self, outline: &Outline) -> Vec<u8> {
        let mut body = Vec::new();
        number(&mut body, outline.units.len() as u64);
        for unit in &outline.units {
            number(&mut body, unit.start.into());
            number(&mut body, (unit.end - unit.start).into());
            match &unit.definition {
                Some((name, kind)) => {
                    number(&mut body, u64::from(self.number(name)) + 1);
                    number(&mut body, self.number(kind).into());
                }
                None => number(&mut body, 0),
            }
            body.extend(unit.key.to_le_bytes());
            let words = unit.words.iter();
            let mut words: Vec<(u32, u32)> = words
                .map(|(word, count)| (self.number(word), *count))
                .collect();
            words.sort_unstable();
            number(&mut body, words.len() as u64);
            let mut last = 0;
            for (word, count) in words {
                number(&mut body, (word - last).into());
                number(&mut body, count.into());
                last = word;
            }
        }
        number(&mut body, outline.names.len() as u64);
        for (name, lines) in &outline.names {
            number(&mut body, self.number(name).into());
            number(&mut body, lines.len() as u64);
            let mut last = 0;
            for line in lines {
                number(&mut body, (line - last).into());
                last = *line;
            }
        }
        body
    }

    fn bytes(&self) -> Vec<u8> {
        let mut rest = Vec::new();
        number(&mut rest, self.strings.len() as u64);
        for string in &self.strings {
            text(&mut rest, string.as_bytes());
        }
        number(&mut rest, self.files.len() as u64);
        for file in &self.files {
            text(&mut rest, file.path.as_bytes());
            number(&mut rest, file.size);
            number(&mut rest, file.modified_ms);
            rest.extend(file.hash.to_le_bytes());
            rest.push(u8::from(file.is_generated));
            text(&mut rest, &file.body);
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend(FORMAT.to_le_bytes());
        bytes.extend(hash(&rest).to_le_bytes());
        bytes.extend(rest);
        bytes
    }
}

fn read(bytes: &[u8]) -> Option<Index> {
    let mut reader = Reader::new(bytes);
    let is_ours = reader.take(8)? == MAGIC && reader.eight()? == FORMAT;
    let sum = reader.eight()?;
    if !is_ours || hash(reader.rest()) != sum {
        return None;
    }
    let n_strings = reader.count()?;
    let strings = (0..n_strings).map(|_| reader.string());
    let strings = strings.collect::<Option<Vec<String>>>()?;
    let n_files = reader.count()?;
    let mut files = Vec::new();
    for _ in 0..n_files {
        files.push(IndexedFile {
            path: reader.string()?,
            size: reader.number()?,
            modified_ms: reader.number()?,
            hash: reader.eight()?,
            is_generated: reader.take(1)? == [1],
            body: reader.text()?.to_vec(),
        });
    }
    Some(Index {
        strings,
        numbers: HashMap::new(),
        files,
    })
}

impl IndexedFile {
    /// A file that was read.
    pub fn new(
        path: String,
        state: (u64, u64),
        content: &[u8],
        index: &mut Index,
        outline: &Outline,
    ) -> Self {
        Self {
            path,
            size: state.0,
            modified_ms: state.1,
            hash: hash(content),
            is_generated: outline.is_generated,
            body: index.body(outline),
        }
    }

    /// A file of which nothing is kept but that it was looked at.
    pub fn empty(path: String, state: (u64, u64)) -> Self {
        Self {
            path,
            size: state.0,
            modified_ms: state.1,
            hash: 0,
            is_generated: false,
            body: Vec::new(),
        }
    }

    /// Goes over the parts and their words, then over the names with their lines.
    pub fn scan(
        &self,
        mut unit: impl FnMut(UnitHead, &[(u32, u32)]),
        mut name: impl FnMut(u32, &[u32]),
    ) -> Option<()> {
        let mut reader = Reader::new(&self.body);
        let (mut words, mut lines) = (Vec::new(), Vec::new());
        if self.body.is_empty() {
            return Some(());
        }
        for _ in 0..reader.count()? {
            let start = reader.small()?;
            let end = start.checked_add(reader.small()?)?;
            let defined = reader.small()?.checked_sub(1);
            let kind = match defined {
                Some(_) => reader.small()?,
                None => 0,
            };
            let key = reader.sixteen()?;
            words.clear();
            let (mut last, mut length) = (0_u32, 0_u32);
            for _ in 0..reader.count()? {
                last = last.checked_add(reader.small()?)?;
                let count = reader.small()?;
                length = length.saturating_add(count);
                words.push((last, count));
            }
            let head = UnitHead {
                start,
                end,
                name: defined,
                kind,
                length,
                key,
            };
            unit(head, &words);
        }
        for _ in 0..reader.count()? {
            let number = reader.small()?;
            lines.clear();
            let mut last = 0_u32;
            for _ in 0..reader.count()? {
                last = last.checked_add(reader.small()?)?;
                lines.push(last);
            }
            name(number, &lines);
        }
        Some(())
    }
}

/// How old a file is that a call which was killed left behind.
const LEFT_BEHIND: Duration = Duration::from_secs(600);

/// How long the index of a project is kept that never changes. A search makes it anew.
const UNUSED: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// Removes what calls that were killed left behind, and indexes of projects that are gone.
fn sweep(folder: &Path) {
    let is_old = |path: &Path| {
        let modified = path.metadata().and_then(|meta| meta.modified()).ok();
        let age = modified.and_then(|modified| modified.elapsed().ok());
        let kind = path.extension().and_then(|extension| extension.to_str());
        let limit = match kind {
            Some("new") => LEFT_BEHIND,
            Some("index") => UNUSED,
            _ => return false,
        };
        age.is_some_and(|age| age > limit)
    };
    let names = folder.read_dir().into_iter().flatten().flatten();
    for path in names.map(|name| name.path()).filter(|path| is_old(path)) {
        drop(std::fs::remove_file(path));
    }
}

/// A number that no other call has: the time, mixed.
#[expect(clippy::disallowed_methods, reason = "a seed, which nobody sees")]
fn unique() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = now.unwrap_or_default().as_nanos();
    let here = std::ptr::from_ref(&nanos).addr();
    hash(format!("{nanos} {here} {}", zeph_plugin::context::call()).as_bytes())
}
