//! What a signature of a plugin says besides, in the trusted comment of minisign: `key:value`, separated by tabs.

use zeph_core::failure::one_line;

/// What the signer says of what was signed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignedFacts {
    /// What the plugin is called where it is published.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// When it was signed, in Unix seconds.
    pub signed_at: Option<i64>,
    /// When the signature stops counting, in Unix seconds.
    pub expires_at: Option<i64>,
}

/// A comment that says something twice, or nothing that could be meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadFacts(String);

/// Most bytes of a name or a version.
pub const FACT_BYTES_MAX: usize = 128;

impl SignedFacts {
    /// What a comment says. One that minisign or a person wrote says less, or nothing.
    ///
    /// Errors: [`BadFacts`], for a fact that stands there twice or cannot be one; other words are passed over.
    pub fn read(comment: &str) -> Result<Self, BadFacts> {
        let mut facts = Self::default();
        for part in comment.split('\t') {
            let Some((key, value)) = part.split_once(':') else {
                continue;
            };
            match key {
                "name" => put(&mut facts.name, key, word(key, value)?)?,
                "version" => put(&mut facts.version, key, word(key, value)?)?,
                "timestamp" => put(&mut facts.signed_at, key, moment(key, value)?)?,
                "expires" => put(&mut facts.expires_at, key, moment(key, value)?)?,
                _ => {}
            }
        }
        Ok(facts)
    }

    /// The comment.
    ///
    /// Errors: [`BadFacts`]: a name or version that no signature can have.
    pub fn write(&self) -> Result<String, BadFacts> {
        let mut parts = Vec::new();
        parts.extend(self.signed_at.map(|at| format!("timestamp:{at}")));
        for (key, fact) in [("name", &self.name), ("version", &self.version)] {
            if let Some(fact) = fact {
                parts.push(format!("{key}:{}", word(key, fact)?));
            }
        }
        parts.extend(self.expires_at.map(|at| format!("expires:{at}")));
        Ok(parts.join("\t"))
    }
}

fn put<T>(place: &mut Option<T>, key: &str, value: T) -> Result<(), BadFacts> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(BadFacts(format!("it says `{key}` twice"))),
    }
}

/// Names and versions are of visible ASCII: two that look the same are the same.
fn word(key: &str, text: &str) -> Result<String, BadFacts> {
    let fits = |byte: u8| byte.is_ascii_graphic();
    match (1..=FACT_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits) {
        true => Ok(text.to_owned()),
        false => Err(BadFacts(format!(
            "`{}` cannot be its {key}: 1 to {FACT_BYTES_MAX} visible ASCII characters",
            one_line(text, 80)
        ))),
    }
}

/// Unix seconds.
fn moment(key: &str, text: &str) -> Result<i64, BadFacts> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let moment = text.parse().ok().filter(|_| is_plain);
    // Whoever reads it counts in milliseconds.
    moment
        .filter(|seconds: &i64| seconds.checked_mul(1000).is_some())
        .ok_or_else(|| BadFacts(format!("`{}` is no time for `{key}`", one_line(text, 40))))
}
