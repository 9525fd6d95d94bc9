//! One file, read: what it defines, which names stand where, and the words of each part.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher as _};

use tree_sitter_c2rust::{Node, Parser, Tree};

use crate::language::{Language, Reading};
use crate::words;

/// Longest time for the tree of one file, in microseconds. A grammar that runs away ends here; its file is searched as text.
const PARSE_MICROS: u64 = 2_000_000;
/// Lines longer than this, in bytes, are no lines that people wrote.
const LINE_MAX: usize = 4_096;
/// Lines of one part of a file that no definition holds.
const CHUNK_LINES: u32 = 40;
/// Bytes of the text of a part that is compared by its meaning: what an embedder takes.
const TEXT_MAX: usize = 8_000;
/// Most words that are kept of one file.
const WORDS_MAX: usize = 200_000;

/// What is known of one file.
#[derive(Debug, Default)]
pub struct Outline {
    /// Its parts: the definitions, and pieces of what lies outside of them.
    pub units: Vec<Unit>,
    /// Identifiers, each with the lines it stands in, from 0, ascending.
    pub names: BTreeMap<String, Vec<u32>>,
    /// Whether a program seems to have written it.
    pub is_generated: bool,
}

/// A part of a file.
#[derive(Debug, Default)]
pub struct Unit {
    /// The first line, from 0.
    pub start: u32,
    /// The last line.
    pub end: u32,
    /// What it defines: the name, and what kind of thing it is.
    pub definition: Option<(String, &'static str)>,
    /// Its words, with how often each stands in it; without those of the definitions inside of it.
    pub words: BTreeMap<String, u32>,
    /// Of its text ([`text_of`]): parts of the same text have the same.
    pub key: u128,
}

impl Outline {
    /// Reads a text.
    pub fn of(reading: Reading, text: &str) -> Self {
        let mut this = Self {
            is_generated: is_generated(text),
            ..Self::default()
        };
        let tree = match reading {
            Reading::Code(language) if !has_long_lines(text) => {
                tree(language, text).map(|tree| (language, tree))
            }
            _ => None,
        };
        match tree {
            Some((language, tree)) => this.read_tree(language, &tree, text),
            None => this.read_lines(text),
        }
        let lines: Vec<&str> = text.lines().collect();
        for unit in &mut this.units {
            unit.key = key_of(&text_of(&lines, unit.start, unit.end));
        }
        this
    }

    fn read_lines(&mut self, text: &str) {
        let mut chunks = Chunks::default();
        for (number, line) in (0..).zip(text.lines().take(WORDS_MAX)) {
            let line = cut(line);
            let unit = chunks.unit(&mut self.units, number);
            self.units[unit].add(line);
        }
    }

    /// Goes over the whole tree, without recursion: trees are as deep as their authors like.
    fn read_tree(&mut self, language: &Language, tree: &Tree, text: &str) {
        let mut chunks = Chunks::default();
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut n_words = 0;
        for node in Nodes::of(tree) {
            while open
                .last()
                .is_some_and(|(_, end)| *end <= node.start_byte() && *end < node.end_byte())
            {
                open.pop();
            }
            if let Some((kind, name)) = language.definition(node) {
                let name = text[name.byte_range()].to_owned();
                self.units.push(Unit {
                    start: line(node.start_position().row),
                    end: last_line(node),
                    definition: Some((name, kind)),
                    words: BTreeMap::new(),
                    key: 0,
                });
                open.push((self.units.len() - 1, node.end_byte()));
            }
            if node.child_count() > 0 || !node.is_named() || n_words >= WORDS_MAX {
                continue;
            }
            n_words += 1;
            let row = line(node.start_position().row);
            let leaf = &text[node.byte_range()];
            let unit = match open.last() {
                Some((unit, _)) => *unit,
                None => chunks.unit(&mut self.units, row),
            };
            self.units[unit].add(leaf);
            if node.kind().ends_with("identifier") && leaf.len() <= 128 {
                let lines = self.names.entry(leaf.to_owned()).or_default();
                if lines.last() != Some(&row) {
                    lines.push(row);
                }
            }
        }
    }
}

impl Unit {
    fn add(&mut self, text: &str) {
        words::split(text, |word| match self.words.get_mut(word) {
            Some(count) => *count += 1,
            None => {
                self.words.insert(word.to_owned(), 1);
            }
        });
    }
}

/// The pieces of what lies outside of definitions.
#[derive(Default)]
struct Chunks(BTreeMap<u32, usize>);

impl Chunks {
    fn unit(&mut self, units: &mut Vec<Unit>, row: u32) -> usize {
        let unit = *self.0.entry(row / CHUNK_LINES).or_insert_with(|| {
            units.push(Unit {
                start: row,
                end: row,
                ..Unit::default()
            });
            units.len() - 1
        });
        units[unit].end = units[unit].end.max(row);
        unit
    }
}

/// Every node of a tree, a parent before its children.
pub struct Nodes<'a> {
    cursor: tree_sitter_c2rust::TreeCursor<'a>,
    is_over: bool,
}

impl std::fmt::Debug for Nodes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nodes").finish_non_exhaustive()
    }
}

impl<'a> Nodes<'a> {
    /// Those of `tree`.
    pub fn of(tree: &'a Tree) -> Self {
        Self {
            cursor: tree.walk(),
            is_over: false,
        }
    }
}

impl<'a> Iterator for Nodes<'a> {
    type Item = Node<'a>;

    fn next(&mut self) -> Option<Node<'a>> {
        if self.is_over {
            return None;
        }
        let node = self.cursor.node();
        if !self.cursor.goto_first_child() {
            while !self.cursor.goto_next_sibling() {
                if !self.cursor.goto_parent() {
                    self.is_over = true;
                    break;
                }
            }
        }
        Some(node)
    }
}

/// The syntax tree of a text; none when it takes too long.
pub fn tree(language: &Language, text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&(language.grammar)()).ok()?;
    parser.set_timeout_micros(PARSE_MICROS);
    parser.parse(text, None)
}

/// The last line of a node; one that ends with its line does not reach into the next.
fn last_line(node: Node<'_>) -> u32 {
    let (start, end) = (node.start_position(), node.end_position());
    let reaches = end.column > 0 || end.row == start.row;
    line(end.row - usize::from(!reaches))
}

/// The text of a part, as it is compared by its meaning: of a long one as much of its beginning as models take.
pub fn text_of(lines: &[&str], start: u32, end: u32) -> String {
    let lines = lines.iter().skip(start as usize);
    let mut text = String::new();
    for line in lines.take((end - start) as usize + 1) {
        if text.len() + line.len() >= TEXT_MAX {
            break;
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// 128 bits of a text.
fn key_of(text: &str) -> u128 {
    let half = |seed: u8| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(seed);
        hasher.write(text.as_bytes());
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

fn line(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}

fn has_long_lines(text: &str) -> bool {
    text.lines().any(|line| line.len() > LINE_MAX)
}

/// As much of a line as is read.
fn cut(line: &str) -> &str {
    let mut end = line.len().min(LINE_MAX);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    &line[..end]
}

/// What generators write into the head of their files.
fn is_generated(text: &str) -> bool {
    let mut head = text.lines().take(10);
    has_long_lines(text)
        || head.any(|line| line.contains("@generated") || line.contains("DO NOT EDIT"))
}
