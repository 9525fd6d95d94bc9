//! Search by meaning: the parts of files whose vectors are nearest to that of the query, by the embedder that the operator granted.
//!
//! The index has a key of every part, made of its text alone. Vectors lie with the host, under these keys; a text is sent once, when its
//! key has none, and only when the file is still what was indexed. Only parts of files that this call sees take part in a search.

use std::collections::HashSet;
use std::time::Instant;

use zeph_plugin::embeddings::{self, Failure, Key, Passage};
use zeph_plugin::progress;

use crate::index::{Index, IndexedFile, hash};
use crate::outline::text_of;
use crate::rank::is_below;
use crate::sys;
use crate::tool::Ground;

/// Parts that take part at most, in the order of their files: as many as the host compares.
const PARTS_MAX: usize = 50_000;
/// Words below which a part says too little to be compared.
const WORDS_MIN: u32 = 4;
/// Texts, and bytes of texts, that are sent at once.
const BATCH_MAX: usize = 32;
const BATCH_BYTES_MAX: usize = 128 * 1024;
/// Texts that one search sends; `zeph-host index` sends as many as one call may.
const SENT_BY_SEARCH_MAX: usize = 256;
const SENT_BY_INDEX_MAX: usize = 4_096;
/// Most parts that a search takes from this layer.
const NEAR_MAX: u32 = 50;

/// How the parts stand to their vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    /// Provider and model.
    pub embedder: String,
    /// Parts that can be found by their meaning.
    pub embedded: usize,
    /// Parts that have no vector yet.
    pub pending: usize,
    /// Whether there are more parts than are compared.
    pub has_more: bool,
}

/// What came of a search by meaning.
#[derive(Debug, Default)]
pub struct Meaning {
    /// None when no embedder is granted.
    pub coverage: Option<Coverage>,
    /// The nearest parts, best first: the file and its first and last line, from 0.
    pub near: Vec<(String, u32, u32)>,
    /// Why something is missing, in a sentence.
    pub problem: Option<String>,
}

/// One part of a file.
struct Part<'a> {
    file: &'a IndexedFile,
    start: u32,
    end: u32,
    key: u128,
}

/// Brings the vectors of the parts below `ground` up to date, until `end`, and looks for the query; an empty one is not looked for.
/// Without `end` nothing is sent but the query.
pub fn search(index: &Index, ground: &Ground, query: &str, end: Option<Instant>) -> Meaning {
    let Some(embedder) = embeddings::embedder() else {
        return Meaning::default();
    };
    let (parts, has_more) = parts(index, &ground.below);
    let mut meaning = Meaning {
        coverage: Some(Coverage {
            embedder,
            embedded: 0,
            pending: parts.len(),
            has_more,
        }),
        ..Meaning::default()
    };
    if let Err(failure) = run(&parts, ground, (query, end), &mut meaning) {
        meaning.problem = Some(failure.message);
    }
    meaning
}

fn run(
    parts: &[Part<'_>],
    ground: &Ground,
    (query, end): (&str, Option<Instant>),
    meaning: &mut Meaning,
) -> Result<(), Failure> {
    let keys: Vec<Key> = parts.iter().map(|part| part.key.into()).collect();
    let missing = embeddings::missing(&keys)?;
    let missing: Vec<&Part<'_>> = missing
        .iter()
        .filter_map(|place| parts.get(*place as usize))
        .collect();
    let mut pending: HashSet<u128> = missing.iter().map(|part| part.key).collect();
    let sent_max = match query.is_empty() {
        true => SENT_BY_INDEX_MAX,
        false => SENT_BY_SEARCH_MAX,
    };
    let sent = match end {
        Some(end) => send(&missing, ground, (end, sent_max), &mut pending),
        None => Ok(()),
    };
    if let Some(coverage) = &mut meaning.coverage {
        let is_pending = |part: &&Part<'_>| pending.contains(&part.key);
        coverage.pending = missing.iter().copied().filter(is_pending).count();
        coverage.embedded = parts.len() - coverage.pending;
    }
    sent?;
    if query.is_empty() {
        return Ok(());
    }
    let near = embeddings::nearest(query, &keys, NEAR_MAX)?;
    let places = near
        .iter()
        .filter_map(|near| parts.get(near.position as usize));
    meaning.near = places
        .map(|part| (part.file.path.clone(), part.start, part.end))
        .collect();
    Ok(())
}

/// The parts that can be compared. What a program wrote is found by its names and words alone.
fn parts<'a>(index: &'a Index, below: &str) -> (Vec<Part<'a>>, bool) {
    let mut parts = Vec::new();
    let files = index.files.iter();
    for file in files.filter(|file| is_below(&file.path, below) && !file.is_generated) {
        // A damaged file ends its own scan alone.
        let _whole = file.scan(
            |unit, _| {
                if unit.length >= WORDS_MIN {
                    parts.push(Part {
                        file,
                        start: unit.start,
                        end: unit.end,
                        key: unit.key,
                    });
                }
            },
            |_, _| {},
        );
        if parts.len() > PARTS_MAX {
            parts.truncate(PARTS_MAX);
            return (parts, true);
        }
    }
    (parts, false)
}

/// Has vectors made for parts that have none, file by file. Takes those that have one from `pending`.
fn send(
    missing: &[&Part<'_>],
    ground: &Ground,
    (end, sent_max): (Instant, usize),
    pending: &mut HashSet<u128>,
) -> Result<(), Failure> {
    let total = pending.len().min(sent_max);
    let mut batch = Batch::default();
    let mut chosen = HashSet::new();
    for of_file in missing.chunk_by(|one, other| one.file.path == other.file.path) {
        let Some(file) = of_file.first().map(|part| part.file) else {
            continue;
        };
        let Ok(Some((bytes, text))) = sys::read(&ground.top.join(&file.path)) else {
            continue;
        };
        if hash(&bytes) != file.hash {
            continue;
        }
        let lines: Vec<&str> = text.lines().collect();
        for part in of_file {
            if chosen.len() == sent_max || Instant::now() > end {
                return batch.store(pending);
            }
            if !chosen.insert(part.key) {
                continue;
            }
            let text = text_of(&lines, part.start, part.end);
            if !batch.has_room_for(&text) {
                batch.store(pending)?;
                progress::count("embedding", (chosen.len() - 1) as u64, Some(total as u64));
            }
            batch.add(part.key, text);
        }
    }
    batch.store(pending)
}

/// Texts that are sent together.
#[derive(Default)]
struct Batch {
    passages: Vec<Passage>,
    keys: Vec<u128>,
    n_bytes: usize,
}

impl Batch {
    fn has_room_for(&self, text: &str) -> bool {
        self.keys.len() < BATCH_MAX && self.n_bytes + text.len() <= BATCH_BYTES_MAX
    }

    fn add(&mut self, key: u128, text: String) {
        self.n_bytes += text.len();
        self.keys.push(key);
        self.passages.push(Passage {
            key: key.into(),
            text,
        });
    }

    /// Sends them; afterwards it is empty.
    fn store(&mut self, pending: &mut HashSet<u128>) -> Result<(), Failure> {
        let batch = std::mem::take(self);
        if batch.keys.is_empty() {
            return Ok(());
        }
        embeddings::store(&batch.passages)?;
        for key in &batch.keys {
            pending.remove(key);
        }
        Ok(())
    }
}
