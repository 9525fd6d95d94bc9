//! Finds what a query may mean in an index, and orders it.
//!
//! Three layers, each with an order of its own: names of definitions, places where a name is used, and parts of files by their words
//! (BM25); beside them what a language server says and what is near by its meaning. They are fused by reciprocal rank, so that no scale
//! of one layer has to fit another.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;

use memchr::memmem::Finder;

use crate::index::{Index, IndexedFile};
use crate::words;

/// The constant of reciprocal rank fusion: how little the first ranks differ.
const RANK_BASE: f64 = 60.0;
/// The constants of BM25: how fast repetition stops to count, and how much length does.
const SATURATION: f64 = 1.2;
const LENGTH_WEIGHT: f64 = 0.75;
/// Lines from the begin of a definition to its name at most: attributes stand before it.
const HEAD_LINES: u32 = 12;
/// Most hits of one layer that take part.
const LAYER_MAX: usize = 500;

/// What one layer found, and what weighs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// A definition of that name.
    Definition,
    /// A place where the name stands.
    Reference,
    /// A part of a file with these words.
    Text,
    /// A part of a syntax tree of that form.
    Pattern,
    /// A place that a language server named.
    Lsp,
    /// A part of a file that means something alike.
    Semantic,
}

impl Layer {
    /// As results name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Definition => "definition",
            Self::Reference => "reference",
            Self::Text => "text",
            Self::Pattern => "pattern",
            Self::Lsp => "lsp",
            Self::Semantic => "semantic",
        }
    }

    fn weight(self) -> f64 {
        match self {
            Self::Definition | Self::Lsp => 1.5,
            Self::Reference => 0.6,
            Self::Text | Self::Pattern | Self::Semantic => 1.0,
        }
    }
}

/// Something found, not looked at yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The best layer that found it.
    pub layer: Layer,
    /// Below the tree's top.
    pub file: String,
    /// The first line, from 0.
    pub start: u32,
    /// The last line.
    pub end: u32,
    /// Higher is better; for comparing hits of one query only.
    pub score: f64,
}

/// What is looked for.
#[derive(Debug)]
pub struct Query {
    words: Vec<String>,
    /// For those of the words that say something inside of another.
    finders: Vec<Finder<'static>>,
    /// The query as one name: its last part, without `::`, `.` and `()`.
    name: Option<String>,
    /// The same in lower case.
    lower: Option<String>,
}

impl Query {
    /// Reads what was asked for.
    pub fn of(text: &str) -> Self {
        let mut found = Vec::new();
        words::split(text, |word| {
            if !found.iter().any(|known| known == word) {
                found.push(word.to_owned());
            }
        });
        let text = text.trim().trim_end_matches("()");
        let last = text.rsplit([':', '.', '/', '>']).next().unwrap_or(text);
        let is_name = |name: &str| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|one| one.is_alphanumeric() || "_$".contains(one))
        };
        let name = is_name(last).then(|| last.to_owned());
        let long = found.iter().filter(|word| word.len() > 2);
        Self {
            finders: long.map(|word| Finder::new(word).into_owned()).collect(),
            words: found,
            lower: name.as_deref().map(str::to_lowercase),
            name,
        }
    }

    /// The same words, with the name of `symbol` as the one that is meant.
    #[must_use]
    pub fn named(self, symbol: &str) -> Self {
        let Self { name, lower, .. } = Self::of(symbol);
        Self {
            name,
            lower,
            ..self
        }
    }

    /// The query as one name, when it is one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// How well a name fits that is the same, or but for capitals.
    fn sameness(&self, name: &str) -> Option<f64> {
        let wanted = self.name.as_ref()?;
        let fit = match name == wanted {
            true => 4.0,
            false => 3.0,
        };
        name.eq_ignore_ascii_case(wanted).then_some(fit)
    }

    /// How well a defined name fits: 0 not at all, 4 it is the same.
    fn fit(&self, name: &str) -> f64 {
        let lower = match name
            .bytes()
            .all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase())
        {
            true => Cow::Borrowed(name),
            false => Cow::Owned(name.to_lowercase()),
        };
        if let (Some(wanted), Some(wanted_lower)) = (&self.name, &self.lower) {
            let rising = [
                (name == wanted, 4.0),
                (lower == *wanted_lower, 3.0),
                (lower.starts_with(wanted_lower), 2.0),
                (lower.contains(wanted_lower), 1.5),
            ];
            if let Some((_, fit)) = rising.iter().find(|(fits, _)| *fits) {
                return *fit;
            }
        }
        let finders = self.finders.iter();
        let contained = finders.filter(|finder| finder.find(lower.as_bytes()).is_some());
        let longer = contained.count();
        match longer >= 2 && longer * 2 >= self.words.len() {
            true => longer as f64 / self.words.len() as f64,
            false => 0.0,
        }
    }
}

/// Which layers take part.
#[derive(Debug, Clone, Copy)]
pub struct Layers {
    /// Names of definitions.
    pub definitions: bool,
    /// Where names stand.
    pub references: bool,
    /// Words.
    pub text: bool,
}

/// What the scan of an index found of a query.
#[derive(Default)]
struct Found<'a> {
    definitions: Vec<(f64, Place<'a>)>,
    references: Vec<(f64, Place<'a>)>,
    texts: Vec<(Vec<u32>, u32, Place<'a>)>,
    n_units: u32,
    total_length: u64,
}

#[derive(Clone, Copy)]
struct Place<'a> {
    file: &'a str,
    start: u32,
    end: u32,
    /// Of the file; it is the same for all places in it.
    weight: f64,
}

/// What another layer found, best first: the file, and the first and last line, from 0.
#[derive(Debug)]
pub struct Other {
    /// Which.
    pub layer: Layer,
    /// Its places, in files of the index.
    pub places: Vec<(String, u32, u32)>,
}

/// Everything that fits `query` in the files of `index` below `below`, and what other layers found, best first. The order depends on
/// nothing else.
pub fn search(
    index: &Index,
    below: &str,
    query: &Query,
    (layers, others): (Layers, &[Other]),
) -> Vec<Hit> {
    let found = scan(index, below, query, layers);
    let texts = weighed(&found, query);
    let mut orders: Vec<(Layer, Vec<Place<'_>>)> = others
        .iter()
        .map(|other| (other.layer, placed(index, query, other)))
        .collect();
    orders.extend([
        (Layer::Definition, ordered(found.definitions)),
        (Layer::Reference, ordered(found.references)),
        (Layer::Text, ordered(texts)),
    ]);
    // What two layers found bears the name of the first.
    orders.sort_by_key(|(layer, _)| match layer {
        Layer::Lsp => 0,
        Layer::Definition => 1,
        Layer::Reference => 2,
        Layer::Pattern | Layer::Text => 3,
        Layer::Semantic => 4,
    });
    fuse(&orders)
}

/// The places of another layer with the weights of their files, in its order.
fn placed<'a>(index: &'a Index, query: &Query, other: &Other) -> Vec<Place<'a>> {
    let places = other.places.iter().filter_map(|(file, start, end)| {
        let known = index.files.binary_search_by(|known| known.path.cmp(file));
        let file = index.files.get(known.ok()?)?;
        let (start, end) = match other.layer {
            Layer::Lsp => defined_at(index, file, query, (*start, *end)),
            _ => (*start, *end),
        };
        Some(Place {
            file: &file.path,
            start,
            end,
            weight: weight_of(file, query),
        })
    });
    places.take(LAYER_MAX).collect()
}

/// The lines of the definition of the query's name that begins in these lines, or the lines themselves: language servers name the line
/// of the name alone.
fn defined_at(
    index: &Index,
    file: &IndexedFile,
    query: &Query,
    (start, end): (u32, u32),
) -> (u32, u32) {
    let mut found = None;
    let is_same = |name: u32| {
        let string = index.strings.get(name as usize);
        string.is_some_and(|string| query.sameness(string).is_some())
    };
    // A damaged file ends its own scan alone.
    let _whole = file.scan(
        |unit, _| {
            if unit.start <= start && start <= unit.end && unit.name.is_some_and(is_same) {
                let head = unit.start + HEAD_LINES >= start;
                let is_inner = found.is_none_or(|(known, _)| unit.start >= known);
                if head && is_inner {
                    found = Some((unit.start, unit.end));
                }
            }
        },
        |_, _| {},
    );
    found.unwrap_or((start, end))
}

fn scan<'a>(index: &'a Index, below: &str, query: &Query, layers: Layers) -> Found<'a> {
    // By the numbers of strings: a table is many times faster here than a map.
    let mut marks = vec![0_u16; index.strings.len()];
    for (mark, string) in marks.iter_mut().zip(&index.strings) {
        let at = query.words.iter().position(|word| word == string);
        *mark = at.and_then(|at| u16::try_from(at + 1).ok()).unwrap_or(0);
    }
    let numbered = (0_u32..).zip(&index.strings);
    let same = numbered.filter_map(|(number, string)| Some((number, query.sameness(string)?)));
    let same: Vec<(u32, f64)> = same.collect();
    // Few strings are names of definitions: the others are not compared.
    let fits = vec![Cell::new(f64::NAN); index.strings.len()];
    let fit_of = |name: u32| {
        let at = name as usize;
        let (Some(fit), Some(string)) = (fits.get(at), index.strings.get(at)) else {
            return 0.0;
        };
        if fit.get().is_nan() {
            fit.set(query.fit(string));
        }
        fit.get()
    };
    let mut found = Found::default();
    for file in index
        .files
        .iter()
        .filter(|file| is_below(&file.path, below))
    {
        let mut defined = Vec::new();
        let weight = weight_of(file, query);
        let place = |start, end| Place {
            file: &file.path,
            start,
            end,
            weight,
        };
        let (mut definitions, mut texts) = (Vec::new(), Vec::new());
        let (mut n_units, mut total) = (0, 0);
        let mut references = Vec::new();
        let scanned = file.scan(
            |unit, counts| {
                n_units += 1;
                total += u64::from(unit.length);
                let fit = unit.name.map_or(0.0, fit_of);
                if fit > 0.0 {
                    definitions.push((fit, place(unit.start, unit.end)));
                    defined.push((unit.name, unit.start));
                }
                let mut tf: Vec<u32> = Vec::new();
                for (word, count) in counts {
                    let mark = marks.get(*word as usize).copied().unwrap_or(0);
                    if let Some(at) = usize::from(mark).checked_sub(1) {
                        tf.resize(query.words.len(), 0);
                        tf[at] = *count;
                    }
                }
                if !tf.is_empty() {
                    texts.push((tf, unit.length, place(unit.start, unit.end)));
                }
            },
            |name, lines| {
                if let Some((_, fit)) = same.iter().find(|(number, _)| *number == name) {
                    let lines = lines.iter().map(|line| (name, *fit, *line));
                    references.extend(lines);
                }
            },
        );
        if scanned.is_none() {
            continue;
        }
        found.n_units += n_units;
        found.total_length += total;
        if layers.definitions {
            found.definitions.extend(definitions);
        }
        if layers.text {
            found.texts.extend(texts);
        }
        if layers.references {
            let uses = references
                .into_iter()
                .filter(|(name, _, line)| !defined.contains(&(Some(*name), *line)));
            found
                .references
                .extend(uses.map(|(_, fit, line)| (fit, place(line, line))));
        }
    }
    found
}

/// Whether `path` is `below` or lies below it.
pub fn is_below(path: &str, below: &str) -> bool {
    let rest = path.strip_prefix(below);
    below.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The parts with their BM25.
fn weighed<'a>(found: &Found<'a>, query: &Query) -> Vec<(f64, Place<'a>)> {
    let n_units = f64::from(found.n_units.max(1));
    let average = (found.total_length as f64 / n_units).max(1.0);
    let rarity: Vec<f64> = (0..query.words.len())
        .map(|at| {
            let having = found.texts.iter().filter(|(tf, ..)| tf[at] > 0).count() as f64;
            (1.0 + (n_units - having + 0.5) / (having + 0.5)).ln()
        })
        .collect();
    let score = |tf: &[u32], length: u32| {
        let norm = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * f64::from(length) / average;
        let each = tf.iter().zip(&rarity).map(|(count, rarity)| {
            let count = f64::from(*count);
            rarity * count * (SATURATION + 1.0) / (count + SATURATION * norm)
        });
        each.sum::<f64>()
    };
    let texts = found.texts.iter();
    texts
        .map(|(tf, length, place)| (score(tf, *length), *place))
        .collect()
}

fn ordered(mut all: Vec<(f64, Place<'_>)>) -> Vec<Place<'_>> {
    let key = |(score, place): &(f64, Place<'_>)| score * place.weight;
    all.sort_by(|a, b| {
        let by_score = key(b).total_cmp(&key(a));
        let by_path = || a.1.file.cmp(b.1.file);
        by_score.then_with(by_path).then(a.1.start.cmp(&b.1.start))
    });
    all.truncate(LAYER_MAX);
    all.into_iter().map(|(_, place)| place).collect()
}

/// Tests, examples and what programs wrote come later; paths with a word of the query earlier.
fn weight_of(file: &IndexedFile, query: &Query) -> f64 {
    let path = file.path.to_lowercase();
    let says = |word: &str| query.words.iter().any(|one| one == word);
    let mut weight = 1.0;
    let aside = ["test", "spec", "example", "bench", "fixture", "mock"];
    if aside.iter().any(|word| path.contains(word) && !says(word)) {
        weight *= 0.7;
    }
    if file.is_generated
        || ["vendor/", "third_party/", ".min."]
            .iter()
            .any(|part| path.contains(part))
    {
        weight *= 0.4;
    }
    let mut long = query.words.iter().filter(|word| word.len() > 2);
    match long.any(|word| path.contains(word.as_str())) {
        true => weight * 1.2,
        false => weight,
    }
}

fn fuse(orders: &[(Layer, Vec<Place<'_>>)]) -> Vec<Hit> {
    let mut hits: BTreeMap<(&str, u32, u32), Hit> = BTreeMap::new();
    for (layer, places) in orders {
        for (rank, place) in places.iter().enumerate() {
            let score = layer.weight() * place.weight / (RANK_BASE + 1.0 + rank as f64);
            let key = (place.file, place.start, place.end);
            let hit = hits.entry(key).or_insert_with(|| Hit {
                layer: *layer,
                file: place.file.to_owned(),
                start: place.start,
                end: place.end,
                score: 0.0,
            });
            hit.score += score;
        }
    }
    let mut hits: Vec<Hit> = hits.into_values().collect();
    hits.sort_by(|a, b| {
        let by_score = b.score.total_cmp(&a.score);
        by_score.then_with(|| (&a.file, a.start).cmp(&(&b.file, b.start)))
    });
    without_repeats(hits)
}

/// Without what lies in a better hit, or around one.
fn without_repeats(hits: Vec<Hit>) -> Vec<Hit> {
    let mut kept: Vec<Hit> = Vec::new();
    for hit in hits {
        let covers = |a: &Hit, b: &Hit| a.file == b.file && a.start <= b.start && a.end >= b.end;
        if !kept
            .iter()
            .any(|better| covers(better, &hit) || covers(&hit, better))
        {
            kept.push(hit);
        }
    }
    kept
}
