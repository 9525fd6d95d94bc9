//! Findings of linters and type checkers: of those that say the same, one is shown, and the places of the others.
//!
//! A finding is one line, with a place before its message (`a.py:1:2: E501 …`, `a.ts(1,2): error …`), with its place below a line
//! that names the file (ESLint), or with its place in the line below it (ruff). The source printed around it goes. Two findings
//! say the same when their messages differ in nothing but names in quotes and numbers; those are told with the place.

mod message;
mod parse;

use std::borrow::Cow;
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
    /// Which of the messages that are remembered each finding has, or [`NO_MESSAGE`].
    message_of: Vec<u16>,
    /// Of each group, which names in its message vary.
    varying: Vec<Vec<bool>>,
    /// What the findings of each group are called, once it is needed.
    names: Vec<OnceCell<String>>,
    /// What stands behind the place of findings that were told, by their message.
    own_names: Vec<Option<String>>,
    /// Findings below the name of their file that are told at its end, by group.
    section: Vec<Vec<u32>>,
    /// The groups of these, in order.
    section_groups: Vec<u32>,
    pieces: Vec<Piece>,
    told: Vec<Range<usize>>,
    /// Room for the words of a note.
    list: String,
    entry: String,
}

/// For a finding whose message is not remembered.
const NO_MESSAGE: u16 = u16::MAX;

impl<'a> Report<'a> {
    fn of(output: &'a str, findings: &'a [Finding<'a>]) -> Self {
        let mut by_template: HashMap<String, u32, RandomState> = HashMap::default();
        let mut groups: Vec<Vec<u32>> = Vec::new();
        let mut group_of = Vec::with_capacity(findings.len());
        let mut fit_note = Vec::with_capacity(findings.len());
        let mut message_of = Vec::with_capacity(findings.len());
        let mut template = String::new();
        // Looked for once for each finding: most of it is hashing what they say.
        let mut known: HashMap<Message<'a>, u16, RandomState> = HashMap::default();
        let mut messages: Vec<(u32, bool)> = Vec::new();
        // A text has no more findings than bytes.
        for (finding, finding_idx) in findings.iter().zip(0..) {
            let message = finding.message(output);
            let same = message.and_then(|message| known.get(&message).copied());
            let told = same.and_then(|message_idx| messages.get(usize::from(message_idx)).copied());
            let (group_idx, fits) = told.unwrap_or_else(|| {
                let fits = write_template(output, finding, &mut template);
                let group_idx = by_template.get(&template).copied().unwrap_or_else(|| {
                    let next = u32::try_from(groups.len()).unwrap_or(u32::MAX);
                    by_template.insert(template.clone(), next);
                    groups.push(Vec::new());
                    next
                });
                (group_idx, fits)
            });
            let message_idx = same.unwrap_or_else(|| {
                let next = u16::try_from(messages.len()).ok();
                let new = message.zip(next.filter(|_| messages.len() < KNOWN_MAX));
                new.map_or(NO_MESSAGE, |(message, next)| {
                    known.insert(message, next);
                    messages.push((group_idx, fits));
                    next
                })
            });
            // Without a file, a place is two numbers.
            let is_plain = !finding.has_path() || !has_control(finding.place(output));
            fit_note.push(fits && is_plain);
            groups[group_idx as usize].push(finding_idx);
            group_of.push(group_idx);
            message_of.push(message_idx);
        }
        // The same words again hold the same names.
        let mut is_seen = vec![false; messages.len()];
        let mut is_new = |finding_idx: usize| {
            let seen = is_seen.get_mut(usize::from(message_of[finding_idx]));
            !seen.is_some_and(|seen| std::mem::replace(seen, true))
        };
        let varying = groups.iter().map(|group| {
            let new = group.iter().map(|finding_idx| *finding_idx as usize);
            let new = new.filter(|finding_idx| is_new(*finding_idx));
            varying(output, new.map(|finding_idx| &findings[finding_idx]))
        });
        Self {
            varying: varying.collect(),
            output,
            fit_note,
            names: vec![OnceCell::new(); groups.len()],
            own_names: vec![None; messages.len()],
            section: vec![Vec::new(); groups.len()],
            section_groups: Vec::new(),
            findings,
            groups,
            group_of,
            message_of,
            pieces: Vec::new(),
            told: Vec::new(),
            list: String::new(),
            entry: String::new(),
        }
    }

    fn write(&mut self, lines: &Lines<'_>) {
        let mut at = 0;
        for (finding_idx, finding) in self.findings.iter().enumerate() {
            let own = finding.lines();
            self.write_others(lines, at..own.start);
            self.add(finding_idx, finding);
            at = own.end;
        }
        self.write_others(lines, at..lines.len());
        self.close();
    }

    /// Shows lines that are no findings: all but blank ones.
    fn write_others(&mut self, lines: &Lines<'_>, others: Range<usize>) {
        for line_idx in others {
            if is_file(lines, line_idx) {
                self.close();
            }
            if !is_blank(lines.at(line_idx)) {
                keep(&mut self.pieces, line_idx);
            }
        }
    }

    /// Shows a finding unless a note tells it: that at the end of its file, or one below the first that says the same.
    fn add(&mut self, finding_idx: usize, finding: &Finding<'_>) {
        let group_idx = self.group_of[finding_idx];
        let group = &self.groups[group_idx as usize];
        let is_first = group[0] as usize == finding_idx;
        if !is_first && self.fit_note[finding_idx] {
            for line_idx in finding.shown() {
                push_line(&mut self.told, line_idx);
            }
            if !finding.has_path() {
                let of_group = &mut self.section[group_idx as usize];
                if of_group.is_empty() {
                    self.section_groups.push(group_idx);
                }
                of_group.extend(u32::try_from(finding_idx));
            }
            return;
        }
        for line_idx in finding.shown() {
            keep(&mut self.pieces, line_idx);
        }
        if is_first && finding.has_path() {
            let others = group[1..].iter().copied();
            let others: Vec<u32> = others.filter(|idx| self.fit_note[*idx as usize]).collect();
            self.note(&others, |n| format!("{n} more").into());
        }
    }

    /// Tells the findings of one file whose message stands somewhere above, by message.
    fn close(&mut self) {
        for group_idx in std::mem::take(&mut self.section_groups) {
            let group_idx = group_idx as usize;
            // The room for them is used again.
            let mut findings = std::mem::take(&mut self.section[group_idx]);
            let name = self.names[group_idx].get_or_init(|| self.name(group_idx));
            let name = name.clone();
            self.note(&findings, |_| name.as_str().into());
            findings.clear();
            self.section[group_idx] = findings;
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
    fn note<'n>(&mut self, findings: &[u32], name: impl Fn(usize) -> Cow<'n, str>) {
        let Some(first) = findings.first() else {
            return;
        };
        let group_idx = self.group_of[*first as usize] as usize;
        let has_own = self.varying[group_idx].contains(&true);
        let between = if has_own { ", " } else { " " };
        let mut list = std::mem::take(&mut self.list);
        let mut entry = std::mem::take(&mut self.entry);
        let mut n = 0;
        let note = |list: &str, n: usize| Piece::Note([&name(n), ": ", list].concat());
        for finding_idx in findings {
            let finding_idx = *finding_idx as usize;
            entry.clear();
            entry.push_str(self.findings[finding_idx].place(self.output));
            if has_own {
                self.push_own(finding_idx, &mut entry);
            }
            if n > 0 && list.len() + entry.len() + 2 * between.len() > NOTE_BYTES {
                self.pieces.push(note(&list, n));
                list.clear();
                n = 0;
            }
            if n > 0 {
                list.push_str(between);
            }
            list.push_str(&entry);
            n += 1;
        }
        self.pieces.push(note(&list, n));
        list.clear();
        (self.list, self.entry) = (list, entry);
    }

    /// Adds to an entry what differs from the first that says the same. The same words were told before, mostly.
    fn push_own(&mut self, finding_idx: usize, entry: &mut String) {
        let known = usize::from(self.message_of[finding_idx]);
        if let Some(Some(own)) = self.own_names.get(known) {
            entry.push_str(own);
            return;
        }
        let start = entry.len();
        let varying = &self.varying[self.group_of[finding_idx] as usize];
        for name in own_names(self.output, &self.findings[finding_idx], varying) {
            entry.push(' ');
            entry.push_str(name);
        }
        if let Some(known) = self.own_names.get_mut(known) {
            *known = Some(entry[start..].to_owned());
        }
    }
}
