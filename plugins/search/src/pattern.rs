//! Patterns over syntax trees: code with holes. `$NAME` stands for any one node, the same text wherever the name comes again; `$_` for
//! any one; `$$$NAME` for any number of them.

use std::collections::HashMap;

use tree_sitter_c2rust::{Node, Tree};

use crate::language::Language;
use crate::outline::{self, Nodes};

/// Most comparisons in one file, so that no pattern takes for ever.
const STEPS_MAX: u32 = 2_000_000;
/// Most places in one file.
const PLACES_MAX: usize = 200;

/// A pattern, read as one language.
#[derive(Debug)]
pub struct Pattern {
    text: String,
    tree: Tree,
    range: (usize, usize),
    sigil: char,
    /// Names that must stand in a file that matches.
    pub literals: Vec<String>,
}

/// What a pattern may have to stand in to be read: a statement, an expression, a member.
fn surroundings(language: &Language) -> &'static [(&'static str, &'static str)] {
    match language.name {
        "Rust" => &[
            ("", ""),
            ("fn f() { ", " }"),
            ("fn f() { ", "; }"),
            ("impl T { ", " }"),
        ],
        "Go" => &[
            ("package p\n", "\n"),
            ("package p\nfunc f() { ", " }\n"),
            ("package p\nvar x = ", "\n"),
        ],
        "Java" => &[
            ("", ""),
            ("class C { ", " }"),
            ("class C { void f() { ", " } }"),
            ("class C { void f() { ", "; } }"),
        ],
        "C" | "C++" => &[("", ""), ("void f() { ", " }"), ("void f() { ", "; }")],
        _ => &[("", ""), ("class C { ", " }")],
    }
}

impl Pattern {
    /// Reads `text` as `language`; none when it is nothing there.
    pub fn of(text: &str, language: &Language) -> Option<Self> {
        let sigil = language.sigil;
        let code = text.trim().replace('$', &sigil.to_string());
        for (before, after) in surroundings(language) {
            let text = format!("{before}{code}{after}");
            let tree = outline::tree(language, &text)?;
            if tree.root_node().has_error() {
                continue;
            }
            let mut this = Self {
                range: (before.len(), before.len() + code.len()),
                text,
                tree,
                sigil,
                literals: Vec::new(),
            };
            this.literals = this.find_literals();
            let is_hole = this.hole(this.node()).is_some();
            return (!is_hole).then_some(this);
        }
        None
    }

    /// The largest node that is the pattern and nothing else, without what only wraps it.
    fn node(&self) -> Node<'_> {
        let (start, end) = self.range;
        let root = self.tree.root_node();
        let mut node = root.descendant_for_byte_range(start, end).unwrap_or(root);
        while node.named_child_count() == 1 {
            let inner = node.named_child(0).filter(|inner| {
                let rest = &self.text[inner.end_byte()..node.end_byte()];
                inner.start_byte() == node.start_byte()
                    && rest.trim_matches([';', ' ', '\n']).is_empty()
            });
            match inner {
                Some(inner) if inner.child_count() > 0 => node = inner,
                _ => break,
            }
        }
        node
    }

    fn find_literals(&self) -> Vec<String> {
        let (start, end) = self.range;
        let inside = Nodes::of(&self.tree)
            .filter(|node| node.start_byte() >= start && node.end_byte() <= end)
            .filter(|node| node.child_count() == 0 && node.kind().ends_with("identifier"));
        let texts = inside.map(|node| self.text[node.byte_range()].to_owned());
        texts.filter(|text| !text.starts_with(self.sigil)).collect()
    }

    /// The hole that `node` is: its name, and whether it stands for any number.
    fn hole(&self, node: Node<'_>) -> Option<(&str, bool)> {
        let text = self.text[node.byte_range()].trim_end_matches(';');
        let name = text.strip_prefix(self.sigil)?;
        let rest = name.trim_start_matches(self.sigil);
        let sigils = (name.len() - rest.len()) / self.sigil.len_utf8();
        let mut characters = rest.chars();
        let is_name =
            characters.all(|one| one.is_ascii_uppercase() || one.is_ascii_digit() || one == '_');
        match (is_name, sigils) {
            (true, 0) if !rest.is_empty() => Some((rest, false)),
            (true, 2) => Some((rest, true)),
            _ => None,
        }
    }

    /// The places in a text that match, as first and last line from 0.
    pub fn places(&self, tree: &Tree, text: &str) -> Vec<(u32, u32)> {
        let wanted = self.node();
        let mut steps = STEPS_MAX;
        let mut places = Vec::new();
        for node in Nodes::of(tree).filter(|node| node.kind_id() == wanted.kind_id()) {
            let mut attempt = Attempt {
                pattern: self,
                text,
                bound: HashMap::new(),
                steps: &mut steps,
            };
            if attempt.node(wanted, node) {
                let lines = (node.start_position().row, node.end_position().row);
                places.push((line(lines.0), line(lines.1)));
            }
            if places.len() == PLACES_MAX {
                break;
            }
        }
        places
    }
}

/// One comparison of the pattern with one node.
struct Attempt<'a> {
    pattern: &'a Pattern,
    text: &'a str,
    bound: HashMap<&'a str, &'a str>,
    steps: &'a mut u32,
}

impl<'a> Attempt<'a> {
    fn node(&mut self, wanted: Node<'a>, node: Node<'_>) -> bool {
        let Some(steps) = self.steps.checked_sub(1) else {
            return false;
        };
        *self.steps = steps;
        let text = &self.text[node.byte_range()];
        if let Some((name, false)) = self.pattern.hole(wanted) {
            return node.is_named() && self.binds(name, text);
        }
        if wanted.kind_id() != node.kind_id() {
            return false;
        }
        if wanted.child_count() == 0 {
            return !wanted.is_named() || self.pattern.text[wanted.byte_range()] == *text;
        }
        let wanted = children(wanted);
        self.sequence(&wanted, &children(node))
    }

    fn binds(&mut self, name: &'a str, text: &'a str) -> bool {
        name == "_" || *self.bound.entry(name).or_insert(text) == text
    }

    fn sequence(&mut self, wanted: &[Node<'a>], nodes: &[Node<'_>]) -> bool {
        let Some((first, rest)) = wanted.split_first() else {
            // A comma or semicolon more at the end is the same code.
            return nodes.iter().all(|node| matches!(node.kind(), "," | ";"));
        };
        if let Some((_, true)) = self.pattern.hole(*first) {
            return (0..=nodes.len()).any(|taken| {
                let bound = self.bound.clone();
                let fits = *self.steps > 0 && self.sequence(rest, &nodes[taken..]);
                if !fits {
                    self.bound = bound;
                }
                fits
            });
        }
        match nodes.split_first() {
            Some((node, others)) => self.node(*first, *node) && self.sequence(rest, others),
            None => matches!(first.kind(), "," | ";") && self.sequence(rest, nodes),
        }
    }
}

/// What stands in a node, without comments.
fn children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    let all = node.children(&mut cursor);
    all.filter(|child| !child.kind().contains("comment"))
        .collect()
}

fn line(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}
