//! What an author says about a component, from the standard sections and from the manifest.
//!
//! The outermost level takes precedence; what it omits is taken from the modules inside, in their order: some toolchains put
//! it there.

use std::collections::BTreeMap;

use serde::Serialize;
use wasmparser::{ComponentName, KnownCustom};
use zeph_core::manifest::{MANIFEST_BYTES_MAX, Manifest, SECTION};
use zeph_core::text::plain_line;

use super::read::{Custom, Parts};

/// Most characters of one fact: a line or two.
const CHARS_MAX: usize = 300;

/// Most names of tools. A Python component names some ten.
const PRODUCERS_MAX: usize = 16;

/// What a component's author and tools say about it. Hostile: anyone can say anything. Each text is one plain line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Metadata {
    /// Its name, when the component itself has one.
    pub name: Option<String>,
    /// Its own version.
    pub version: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// Who wrote it.
    pub authors: Option<String>,
    /// An SPDX expression, unchecked.
    pub licenses: Option<String>,
    /// A page about it.
    pub homepage: Option<String>,
    /// Where its source is.
    pub source: Option<String>,
    /// What made it and the runtimes in it, with versions. Which language its author wrote is not among it: the languages
    /// that are named are those of the runtimes.
    pub made_with: Vec<String>,
}

pub(super) fn metadata(parts: &Parts<'_>) -> Metadata {
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    let mut metadata = Metadata::default();
    for custom in by_level(parts) {
        match custom.reader.as_known() {
            KnownCustom::ComponentName(names) if custom.depth == 0 => {
                let named = names
                    .into_iter()
                    .filter_map(Result::ok)
                    .find_map(|name| match name {
                        ComponentName::Component { name, .. } => Some(name),
                        _ => None,
                    });
                add_text(&mut texts, "name", named);
            }
            KnownCustom::Producers(fields) => metadata.add_producers(fields),
            KnownCustom::Unknown if custom.reader.name() != SECTION => {
                let text = std::str::from_utf8(custom.reader.data()).ok();
                add_text(&mut texts, custom.reader.name(), text);
            }
            _ => {}
        }
    }
    let mut take = |name| texts.remove(name);
    Metadata {
        name: take("name"),
        version: take("version"),
        description: take("description"),
        authors: take("authors"),
        licenses: take("licenses"),
        homepage: take("homepage"),
        source: take("source"),
        ..metadata
    }
}

/// What the component wants, and what is wrong with how it says so.
///
/// One manifest counts for all: two that differ leave open which one its operator has read.
pub(super) fn manifest(parts: &Parts<'_>) -> (Option<Manifest>, Option<String>) {
    let customs = parts.customs.iter();
    let mut sections = customs
        .map(|custom| &custom.reader)
        .filter(|custom| custom.name() == SECTION);
    let Some(first) = sections.next() else {
        return (None, None);
    };
    if sections.any(|other| other.data() != first.data()) {
        let problem = format!("it has two manifests (`{SECTION}`) that differ; it may have one");
        return (None, Some(problem));
    }
    if first.data().len() > MANIFEST_BYTES_MAX {
        let n_bytes = first.data().len();
        let problem =
            format!("its manifest has {n_bytes} bytes; the limit is {MANIFEST_BYTES_MAX}");
        return (None, Some(problem));
    }
    let bad = |reason: String| {
        let problem = format!(
            "its manifest (`plugin.toml`) is bad: {}",
            plain_line(&reason, CHARS_MAX)
        );
        (None, Some(problem))
    };
    match std::str::from_utf8(first.data()) {
        Err(_) => bad("it is not UTF-8".to_owned()),
        Ok(text) => match Manifest::parse(text) {
            Err(error) => bad(error.to_string()),
            Ok(manifest) => (Some(manifest), None),
        },
    }
}

/// The outermost first, otherwise in their order.
fn by_level<'a, 'b>(parts: &'b Parts<'a>) -> impl Iterator<Item = &'b Custom<'a>> {
    let outer = parts.customs.iter().filter(|custom| custom.depth == 0);
    outer.chain(parts.customs.iter().filter(|custom| custom.depth > 0))
}

fn add_text<'a>(texts: &mut BTreeMap<&'a str, String>, name: &'a str, text: Option<&str>) {
    let plain = text
        .map(|text| plain_line(text, CHARS_MAX))
        .unwrap_or_default();
    if !plain.is_empty() {
        texts.entry(name).or_insert(plain);
    }
}

impl Metadata {
    fn add_producers(&mut self, fields: wasmparser::ProducersSectionReader<'_>) {
        let fields = fields
            .into_iter()
            .take(PRODUCERS_MAX)
            .filter_map(Result::ok);
        for field in fields.filter(|field| field.name != "language") {
            for value in field
                .values
                .into_iter()
                .take(PRODUCERS_MAX)
                .filter_map(Result::ok)
            {
                let named = plain_line(&format!("{} {}", value.name, value.version), CHARS_MAX);
                let list = &mut self.made_with;
                if list.len() < PRODUCERS_MAX && !named.is_empty() && !list.contains(&named) {
                    list.push(named);
                }
            }
        }
    }
}
