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

use self::message::{own_names, template, varying};
use self::parse::{Finding, is_file, read};
use crate::selection::{keep, push_line};
use crate::text::is_blank;
use crate::{Confidence, Input, Lines, Piece, Selection};

/// Longest list of places in one note, in bytes.
const NOTE_BYTES: usize = 8 * 1024;

/// Selects one of the findings that say the same, and notes on the others.
pub(super) fn apply(input: &Input<'_>) -> Selection {
    let findings = read(input.lines);
    if findings.is_empty() {
        return Selection::all(input, Confidence::Fallback);
    }
    let mut report = Report::of(&findings);
    report.write(input.lines);
    report.told.sort_unstable();
    let mut told = Vec::new();
    for line_idx in report.told {
        push_line(&mut told, line_idx);
    }
    Selection {
        pieces: report.pieces,
        confidence: Confidence::Full,
        told,
    }
}

struct Report<'a> {
    findings: &'a [Finding<'a>],
    /// The numbers of findings that say the same, ascending.
    groups: Vec<Vec<usize>>,
    /// The group of each finding.
    group_of: Vec<usize>,
    /// Of each group, which names in its message vary.
    varying: Vec<Vec<bool>>,
    /// What the findings of each group are called, once it is needed.
    names: Vec<OnceCell<String>>,
    pieces: Vec<Piece>,
    told: Vec<usize>,
}

impl<'a> Report<'a> {
    fn of(findings: &'a [Finding<'a>]) -> Self {
        let mut by_template: HashMap<String, usize, RandomState> = HashMap::default();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut group_of = Vec::new();
        for (finding_idx, finding) in findings.iter().enumerate() {
            let group_idx = *by_template.entry(template(finding)).or_insert(groups.len());
            if group_idx == groups.len() {
                groups.push(Vec::new());
            }
            groups[group_idx].push(finding_idx);
            group_of.push(group_idx);
        }
        let of_group = |group: &Vec<usize>| {
            let group: Vec<_> = group.iter().map(|idx| &findings[*idx]).collect();
            varying(&group)
        };
        Self {
            varying: groups.iter().map(of_group).collect(),
            names: vec![OnceCell::new(); groups.len()],
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
        let group = &self.groups[self.group_of[finding_idx]];
        let is_first = group[0] == finding_idx;
        if !is_first && finding.fits_note() {
            self.told.extend(finding.shown());
            return !finding.has_path;
        }
        for line_idx in finding.shown() {
            keep(&mut self.pieces, line_idx);
        }
        if is_first && finding.has_path {
            let others = group[1..].iter().copied();
            let others: Vec<_> = others
                .filter(|idx| self.findings[*idx].fits_note())
                .collect();
            self.note(&others, |n| format!("{n} more"));
        }
        false
    }

    /// Tells the findings of one file whose message stands somewhere above, by message.
    fn close(&mut self, section: &mut Vec<usize>) {
        let mut by_group: Vec<(usize, Vec<usize>)> = Vec::new();
        for finding_idx in section.drain(..) {
            let group_idx = self.group_of[finding_idx];
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
        let first = |group: &Vec<usize>| &self.findings[group[0]];
        let own = first(&self.groups[group_idx]);
        let of_rule = self
            .groups
            .iter()
            .filter(|group| first(group).rule() == own.rule());
        if of_rule.count() == 1 && !own.rule().is_empty() {
            return own.rule().to_owned();
        }
        let words: Vec<&str> = own.texts().flat_map(str::split_whitespace).collect();
        words.join(" ")
    }

    /// Notes on findings: their places, each with what differs from the first that says the same.
    fn note(&mut self, findings: &[usize], name: impl Fn(usize) -> String) {
        let entries: Vec<String> = findings.iter().map(|idx| self.entry(*idx)).collect();
        let has_names = entries.iter().any(|entry| entry.contains(' '));
        let between = if has_names { ", " } else { " " };
        let mut rest = entries.as_slice();
        while !rest.is_empty() {
            let mut n_bytes = 0;
            let fits = |entry: &&String| {
                n_bytes += entry.len() + between.len();
                n_bytes <= NOTE_BYTES
            };
            let n = rest.iter().take_while(fits).count().max(1);
            let note = format!("{}: {}", name(n), rest[..n].join(between));
            self.pieces.push(Piece::Note(note));
            rest = &rest[n..];
        }
    }

    fn entry(&self, finding_idx: usize) -> String {
        let finding = &self.findings[finding_idx];
        let group_idx = self.group_of[finding_idx];
        let mut entry = finding.place.to_owned();
        for name in own_names(finding, &self.varying[group_idx]) {
            entry.push(' ');
            entry.push_str(name);
        }
        entry
    }
}
