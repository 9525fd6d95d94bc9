//! Findings of linters and type checkers: of those that say the same, one is shown, and the places of the others.
//!
//! A finding is one line, with a place before its message (`a.py:1:2: E501 …`, `a.ts(1,2): error …`), with its place below a line
//! that names the file (ESLint), or with its place in the line below it (ruff). The source printed around it goes. Two findings
//! say the same when their messages differ in nothing but names in quotes and numbers; those are told with the place.

mod message;
mod parse;

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;

use self::message::{KNOWN_MAX, own_names, varying, write_template};
use self::parse::{Finding, Message, is_file, read};
use crate::selection::{keep, push_line};
use crate::text::is_blank;
use crate::{Confidence, Input, Lines, Piece, Selection, has_control};

/// Longest list of places in one note, in bytes.
const NOTE_BYTES: usize = 8 * 1024;

/// Selects one of the findings that say the same, and notes on the others.
pub(super) fn apply(input: &Input<'_>) -> Selection {
    let findings = read(input.lines);
    if findings.is_empty() {
        return Selection::all(input, Confidence::Fallback);
    }
    let mut report = Report::of(input.lines.text(), &findings);
    report.write(input.lines);
    Selection {
        pieces: report.pieces,
        confidence: Confidence::Full,
        told: report.told,
    }
}

struct Report<'a> {
    output: &'a str,
    findings: &'a [Finding<'a>],
    /// The numbers of findings that say the same, ascending.
    groups: Vec<Vec<u32>>,
    /// The group of each finding.
    group_of: Vec<u32>,
    /// Whether a note can tell each finding.
    fit_note: Vec<bool>,
    /// Of each group, which names in its message vary.
    varying: Vec<Vec<bool>>,
    /// What the findings of each group are called, once it is needed.
    names: Vec<OnceCell<String>>,
    /// What stands behind the place of findings that were told, by their words.
    own_names: HashMap<Message<'a>, String, RandomState>,
    pieces: Vec<Piece>,
    told: Vec<Range<usize>>,
}

impl<'a> Report<'a> {
    fn of(output: &'a str, findings: &'a [Finding<'a>]) -> Self {
        let mut by_template: HashMap<String, u32, RandomState> = HashMap::default();
        let mut groups: Vec<Vec<u32>> = Vec::new();
        let mut group_of = Vec::with_capacity(findings.len());
        let mut fit_note = Vec::with_capacity(findings.len());
        let mut template = String::new();
        let mut known: HashMap<Message<'a>, (u32, bool), RandomState> = HashMap::default();
        // A text has no more findings than bytes.
        for (finding, finding_idx) in findings.iter().zip(0..) {
            let message = finding.message(output);
            let same = message.and_then(|message| known.get(&message).copied());
            let (group_idx, fits) = same.unwrap_or_else(|| {
                let fits = write_template(output, finding, &mut template);
                let group_idx = by_template.get(&template).copied().unwrap_or_else(|| {
                    let next = u32::try_from(groups.len()).unwrap_or(u32::MAX);
                    by_template.insert(template.clone(), next);
                    groups.push(Vec::new());
                    next
                });
                if let Some(message) = message.filter(|_| known.len() < KNOWN_MAX) {
                    known.insert(message, (group_idx, fits));
                }
                (group_idx, fits)
            });
            // Without a file, a place is two numbers.
            let is_plain = !finding.has_path() || !has_control(finding.place(output));
            fit_note.push(fits && is_plain);
            groups[group_idx as usize].push(finding_idx);
            group_of.push(group_idx);
        }
        let of_group =
            |group: &Vec<u32>| varying(output, group.iter().map(|idx| &findings[*idx as usize]));
        Self {
            varying: groups.iter().map(of_group).collect(),
            output,
            fit_note,
            names: vec![OnceCell::new(); groups.len()],
            own_names: HashMap::default(),
            findings,
            groups,
            group_of,
            pieces: Vec::new(),
            told: Vec::new(),
        }
    }

    fn write(&mut self, lines: &Lines<'_>) {
        // Findings below the name of their file that are told at its end.
        let mut section = Vec::new();
        let mut at = 0;
        for (finding_idx, finding) in self.findings.iter().enumerate() {
            let own = finding.lines();
            self.write_others(lines, at..own.start, &mut section);
            if self.add(finding_idx, finding) {
                section.push(finding_idx);
            }
            at = own.end;
        }
        self.write_others(lines, at..lines.len(), &mut section);
        self.close(&mut section);
    }

    /// Shows lines that are no findings: all but blank ones.
    fn write_others(&mut self, lines: &Lines<'_>, others: Range<usize>, section: &mut Vec<usize>) {
        for line_idx in others {
            if is_file(lines, line_idx) {
                self.close(section);
            }
            if !is_blank(lines.at(line_idx)) {
                keep(&mut self.pieces, line_idx);
            }
        }
    }

    /// Shows a finding unless a note tells it; whether that note is the one at the end of its file.
    fn add(&mut self, finding_idx: usize, finding: &Finding<'_>) -> bool {
        let group = &self.groups[self.group_of[finding_idx] as usize];
        let is_first = group[0] as usize == finding_idx;
        if !is_first && self.fit_note[finding_idx] {
            for line_idx in finding.shown() {
                push_line(&mut self.told, line_idx);
            }
            return !finding.has_path();
        }
        for line_idx in finding.shown() {
            keep(&mut self.pieces, line_idx);
        }
        if is_first && finding.has_path() {
            let others = group[1..].iter().map(|idx| *idx as usize);
            let others: Vec<_> = others.filter(|idx| self.fit_note[*idx]).collect();
            self.note(&others, |n| format!("{n} more"));
        }
        false
    }

    /// Tells the findings of one file whose message stands somewhere above, by message.
    fn close(&mut self, section: &mut Vec<usize>) {
        let mut by_group: Vec<(usize, Vec<usize>)> = Vec::new();
        for finding_idx in section.drain(..) {
            let group_idx = self.group_of[finding_idx] as usize;
            match by_group.iter_mut().find(|(idx, _)| *idx == group_idx) {
                Some((_, findings)) => findings.push(finding_idx),
                None => by_group.push((group_idx, vec![finding_idx])),
            }
        }
        for (group_idx, findings) in by_group {
            let name = self.names[group_idx].get_or_init(|| self.name(group_idx));
            let name = name.clone();
            self.note(&findings, |_| name.clone());
        }
    }

    /// What findings of a group are called: their rule, or all of the message where the rule has several.
    fn name(&self, group_idx: usize) -> String {
        let first = |group: &Vec<u32>| &self.findings[group[0] as usize];
        let own = first(&self.groups[group_idx]);
        let of_rule = self
            .groups
            .iter()
            .filter(|group| first(group).rule(self.output) == own.rule(self.output));
        if of_rule.count() == 1 && !own.rule(self.output).is_empty() {
            return own.rule(self.output).to_owned();
        }
        let words: Vec<&str> = own
            .texts(self.output)
            .flat_map(str::split_whitespace)
            .collect();
        words.join(" ")
    }

    /// Notes on findings: their places, each with what differs from the first that says the same.
    fn note(&mut self, findings: &[usize], name: impl Fn(usize) -> String) {
        let Some(first) = findings.first() else {
            return;
        };
        let varying = &self.varying[self.group_of[*first] as usize];
        let between = if varying.contains(&true) { ", " } else { " " };
        let (mut list, mut n, mut entry) = (String::new(), 0, String::new());
        for finding_idx in findings {
            let finding = &self.findings[*finding_idx];
            entry.clear();
            entry.push_str(finding.place(self.output));
            if varying.contains(&true) {
                write_own(
                    self.output,
                    finding,
                    varying,
                    (&mut self.own_names, &mut entry),
                );
            }
            if n > 0 && list.len() + entry.len() + 2 * between.len() > NOTE_BYTES {
                self.pieces
                    .push(Piece::Note(format!("{}: {list}", name(n))));
                list.clear();
                n = 0;
            }
            if n > 0 {
                list.push_str(between);
            }
            list.push_str(&entry);
            n += 1;
        }
        self.pieces
            .push(Piece::Note(format!("{}: {list}", name(n))));
    }
}

/// Adds to an entry what differs from the first that says the same. The same words were told before, mostly.
fn write_own<'a>(
    output: &'a str,
    finding: &Finding<'a>,
    varying: &[bool],
    (known, entry): (&mut HashMap<Message<'a>, String, RandomState>, &mut String),
) {
    let message = finding.message(output);
    if let Some(own) = message.and_then(|message| known.get(&message)) {
        entry.push_str(own);
        return;
    }
    let start = entry.len();
    for name in own_names(output, finding, varying) {
        entry.push(' ');
        entry.push_str(name);
    }
    if let Some(message) = message.filter(|_| known.len() < KNOWN_MAX) {
        known.insert(message, entry[start..].to_owned());
    }
}
