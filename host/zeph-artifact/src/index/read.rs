//! From the text of an index to what it says.

use std::collections::BTreeSet;

use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use zeph_core::failure::one_line;
use zeph_core::signer::SignerKey;

use super::{
    FORMAT, INDEX_BYTES_MAX, Index, IndexError, IndexedPlugin, KEYS_MAX, PLUGINS_MAX, VERSIONS_MAX,
};

/// Characters of what is wrong.
const PROBLEM_CHARS_MAX: usize = 300;

/// Most bytes of a name.
const NAME_BYTES_MAX: usize = 64;

/// Most bytes of a description, or of why a version was withdrawn.
const TEXT_BYTES_MAX: usize = 1_000;

/// Most bytes of a source, a URL, a key, a keyword.
const WORD_BYTES_MAX: usize = 500;

/// Most keywords of a plugin.
const KEYWORDS_MAX: usize = 32;

/// The document, exactly.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawIndex {
    #[serde(rename = "format")]
    _format: u32,
    number: i64,
    expires: String,
    #[serde(default)]
    addresses: Vec<String>,
    #[serde(default)]
    keys: Vec<String>,
    plugins: Vec<IndexedPlugin>,
}

/// What a document of any format has.
#[derive(Deserialize)]
struct AnyFormat {
    format: u32,
}

/// An index, the keys for the next one, and where it may be had from.
pub(super) struct ReadIndex {
    pub(super) index: Index,
    pub(super) keys: Vec<SignerKey>,
    /// None for one that is the same everywhere.
    pub(super) addresses: Vec<String>,
}

/// Reads a document.
///
/// Errors: `Bad`, `Newer`.
pub(super) fn index(document: &[u8]) -> Result<ReadIndex, IndexError> {
    if document.len() > INDEX_BYTES_MAX {
        return Err(bad(format!("it has more than {INDEX_BYTES_MAX} bytes")));
    }
    let AnyFormat { format } = parsed(document)?;
    match format {
        FORMAT => {}
        found if found > FORMAT => return Err(IndexError::Newer { found }),
        found => return Err(bad(format!("there is no format {found}"))),
    }
    let RawIndex {
        number,
        expires,
        addresses,
        keys,
        plugins,
        ..
    } = parsed(document)?;
    if number < 1 {
        return Err(bad("its number is at least 1"));
    }
    let is_word = |address: &String| {
        let is_long = address.len() > WORD_BYTES_MAX;
        !is_long && !address.contains(|char: char| char.is_control() || char == '`')
    };
    if addresses.len() > KEYS_MAX || !addresses.iter().all(is_word) {
        return Err(bad(format!(
            "`addresses` are at most {KEYS_MAX}, each of at most {WORD_BYTES_MAX} bytes"
        )));
    }
    let keys = read_keys(&keys)?;
    check_plugins(&plugins)?;
    Ok(ReadIndex {
        index: Index {
            number,
            expires_at_ms: moment(&expires)?,
            plugins,
        },
        keys,
        addresses,
    })
}

fn parsed<'a, T: Deserialize<'a>>(document: &'a [u8]) -> Result<T, IndexError> {
    serde_json::from_slice(document).map_err(|error| bad(error.to_string()))
}

/// Only keys of minisign: the signature of an index is a file of it.
fn read_keys(keys: &[String]) -> Result<Vec<SignerKey>, IndexError> {
    let wrong = || {
        bad(format!(
            "`keys` are at most {KEYS_MAX} public keys of minisign, each the second line of its file"
        ))
    };
    if keys.len() > KEYS_MAX {
        return Err(wrong());
    }
    let keys = keys.iter().map(|line| match line.parse() {
        Ok(key @ SignerKey::Minisign { .. }) => Ok(key),
        _ => Err(wrong()),
    });
    keys.collect()
}

fn check_plugins(plugins: &[IndexedPlugin]) -> Result<(), IndexError> {
    if plugins.len() > PLUGINS_MAX {
        return Err(bad(format!("it has more than {PLUGINS_MAX} plugins")));
    }
    let mut places = BTreeSet::new();
    for plugin in plugins {
        let wrong = |why: String| {
            bad(format!(
                "plugin `{}`: {why}",
                one_line(&plugin.name, NAME_BYTES_MAX)
            ))
        };
        check_texts(plugin).map_err(|why| wrong(why.to_owned()))?;
        check_versions(plugin).map_err(wrong)?;
        if let Some(source) = &plugin.source
            && !places.insert(source)
        {
            return Err(wrong("its source is that of another plugin".to_owned()));
        }
    }
    Ok(())
}

fn check_texts(plugin: &IndexedPlugin) -> Result<(), &'static str> {
    let words = plugin.keywords.iter().chain(&plugin.homepage);
    let mut words = words.chain(&plugin.source);
    if !(1..=NAME_BYTES_MAX).contains(&plugin.name.len()) {
        return Err("a name has 1 to 64 bytes");
    }
    if plugin.description.len() > TEXT_BYTES_MAX {
        return Err("a description has at most 1000 bytes");
    }
    if plugin.keywords.len() > KEYWORDS_MAX || words.any(|word| word.len() > WORD_BYTES_MAX) {
        return Err("there are at most 32 keywords, and a word has at most 500 bytes");
    }
    Ok(())
}

fn check_versions(plugin: &IndexedPlugin) -> Result<(), String> {
    if plugin.versions.len() > VERSIONS_MAX {
        return Err(format!("it has more than {VERSIONS_MAX} versions"));
    }
    let mut seen = BTreeSet::new();
    for one in &plugin.versions {
        let version = &one.version;
        if !seen.insert(version) {
            return Err(format!("version {version} stands there twice"));
        }
        if plugin.source.is_none() && (one.url.is_none() || one.component.is_none()) {
            return Err(format!(
                "version {version}: without `source`, a version has a `url` and the digest of its `component`"
            ));
        }
        let texts = one.url.iter().chain(&one.yanked);
        if texts.into_iter().any(|text| text.len() > TEXT_BYTES_MAX) {
            return Err(format!("version {version}: a text has at most 1000 bytes"));
        }
    }
    Ok(())
}

fn moment(text: &str) -> Result<i64, IndexError> {
    let moment = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| {
        let shown = one_line(text, NAME_BYTES_MAX);
        bad(format!(
            "`{shown}` is not a time such as `2026-12-31T00:00:00Z`"
        ))
    })?;
    Ok(moment.unix_timestamp().saturating_mul(1000))
}

/// A moment as RFC 3339, in UTC.
pub(super) fn shown(at_ms: i64) -> String {
    OffsetDateTime::from_unix_timestamp(at_ms.div_euclid(1000))
        .ok()
        .and_then(|moment| moment.format(&Rfc3339).ok())
        .unwrap_or_else(|| "an unknown time".to_owned())
}

fn bad(why: impl AsRef<str>) -> IndexError {
    IndexError::Bad(one_line(why.as_ref(), PROBLEM_CHARS_MAX))
}
