//! The search in a text that comes in pieces: what may become a secret is held back until that is known.

use super::view::{EscapeLayer, View, n_before_controls};
use super::{Needles, RedactionMark, Redactor};

/// How many escapes one in the other are undone.
const LAYERS_MAX: usize = 2;

/// A redactor of one text in pieces. What it holds back at most depends on its secrets only: some bytes for each of their characters,
/// and four kilobytes of colours and the like between two of them.
#[derive(Debug)]
pub struct RedactStream {
    redactor: Redactor,
    mark: RedactionMark,
    /// What was not given out.
    held: Vec<u8>,
    /// So many of its first bytes belong to a secret whose mark was given out.
    n_marked: usize,
    first_hit: Option<usize>,
}

/// A place of a secret.
#[derive(Debug, Clone, Copy)]
struct Hit {
    start: usize,
    end: usize,
    /// The index of the secret; `None`: its mark was given out.
    secret: Option<usize>,
}

impl RedactStream {
    pub(super) fn new(redactor: Redactor, mark: RedactionMark) -> Self {
        Self {
            redactor,
            mark,
            held: Vec::new(),
            n_marked: 0,
            first_hit: None,
        }
    }

    /// Takes a piece, and gives out what is certain of all so far.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.advance(piece, false)
    }

    /// The text is at its end: gives out the rest, and is ready for another.
    pub fn finish(&mut self) -> Vec<u8> {
        self.advance(&[], true)
    }

    /// Forgets what is held back: a part of the text is missing.
    pub fn reset(&mut self) {
        self.n_marked = 0;
        self.held.clear();
    }

    /// How many bytes are held back.
    pub fn n_held(&self) -> usize {
        self.held.len()
    }

    /// The index of the secret that was found first.
    pub(super) fn first_hit(&self) -> Option<usize> {
        self.first_hit
    }

    fn advance(&mut self, piece: &[u8], is_end: bool) -> Vec<u8> {
        let Some(needles) = self.redactor.0.clone() else {
            return piece.to_vec();
        };
        self.held.extend_from_slice(piece);
        let (hits, n_certain) = needles.search(&self.held, is_end);
        let marked = Hit {
            start: 0,
            end: self.n_marked,
            secret: None,
        };
        let marked = (self.n_marked > 0).then_some(marked);
        let hits = merged(marked.into_iter().chain(hits).collect());
        self.give_out(&needles, &hits, n_certain)
    }

    /// The first `n_certain` bytes with marks in the place of `hits`, which may reach beyond.
    fn give_out(&mut self, needles: &Needles, hits: &[Hit], n_certain: usize) -> Vec<u8> {
        if n_certain == 0 {
            return Vec::new();
        }
        let mut given = Vec::with_capacity(n_certain);
        let mut at = 0;
        self.n_marked = 0;
        for hit in hits.iter().filter(|hit| hit.start < n_certain) {
            given.extend_from_slice(&self.held[at..hit.start]);
            at = hit.end.min(n_certain);
            self.n_marked = hit.end - at;
            self.first_hit = self.first_hit.or(hit.secret);
            match (self.mark, hit.secret) {
                (RedactionMark::Length, _) => given.resize(given.len() + at - hit.start, b'*'),
                (RedactionMark::Name, Some(secret)) => {
                    given.extend_from_slice(needles.marks[secret].as_bytes());
                }
                (RedactionMark::Name, None) => {}
            }
        }
        given.extend_from_slice(&self.held[at..n_certain]);
        self.held.drain(..n_certain);
        given
    }
}

/// Hits in order, those that overlap as one.
fn merged(mut hits: Vec<Hit>) -> Vec<Hit> {
    // What was marked comes first, and its length before what it may be a part of.
    hits.sort_by_key(|hit| (hit.start, hit.secret.is_some(), std::cmp::Reverse(hit.end)));
    let mut merged: Vec<Hit> = Vec::new();
    for hit in hits {
        match merged.last_mut() {
            Some(last) if hit.start < last.end => last.end = last.end.max(hit.end),
            _ => merged.push(hit),
        }
    }
    merged
}

impl Needles {
    /// Every secret in `text`, in any view of it, and how much of the text is certain to begin none.
    fn search(&self, text: &[u8], is_end: bool) -> (Vec<Hit>, usize) {
        let views = views(text, is_end);
        let mut hits = Vec::new();
        let mut n_certain = text.len();
        for view in &views {
            let found = self.automaton.find_overlapping_iter(&*view.bytes);
            hits.extend(found.map(|found| {
                let (start, end) = (view.origin(found.start()), view.origin(found.end()));
                let secret = Some(self.owners[found.pattern().as_usize()]);
                // The end of a line that was folded belongs to what comes after, and so does the end of a colour.
                let end = start + n_before_controls(&text[start..end]);
                Hit { start, end, secret }
            }));
            if !is_end {
                let begun = self.begun(&view.bytes).map(|at| view.origin(at));
                n_certain = n_certain.min(view.open).min(begun.unwrap_or(n_certain));
            }
        }
        // The rest is read anew with the next piece: from a place where every view reads the same.
        loop {
            let borders = views.iter().map(|view| view.border(n_certain));
            match borders.min() {
                Some(border) if border < n_certain => n_certain = border,
                _ => return (hits, n_certain),
            }
        }
    }

    /// Whether a secret is in `text`, in any view of it and any case of its letters.
    pub(super) fn are_in_any_case(&self, text: &[u8]) -> bool {
        views(text, true).iter().any(|view| {
            self.texts.iter().any(|text| {
                let mut places = view.bytes.windows(text.len());
                places.any(|place| place.eq_ignore_ascii_case(text))
            })
        })
    }

    /// Where in `bytes` a secret may begin that does not end in them.
    fn begun(&self, bytes: &[u8]) -> Option<usize> {
        let first = (bytes.len() + 1).saturating_sub(self.len_max);
        let begins = |at: &usize| {
            let rest = &bytes[*at..];
            let of_byte = self.begins[usize::from(rest[0])].iter();
            let texts = of_byte.map(|idx| &self.texts[*idx]);
            let mut longer = texts.take_while(|text| text.len() > rest.len());
            longer.any(|text| text.starts_with(rest))
        };
        (first..bytes.len()).find(begins)
    }
}

/// The text as it is, and with escapes undone, in each order.
fn views(text: &[u8], is_end: bool) -> Vec<View<'_>> {
    let mut views = vec![View::of(text)];
    let mut first = 0;
    for _ in 0..LAYERS_MAX {
        let outer = first..views.len();
        first = views.len();
        for idx in outer {
            let inner = EscapeLayer::ALL.map(|layer| views[idx].without(layer, is_end));
            views.extend(inner.into_iter().flatten());
        }
    }
    views
}
