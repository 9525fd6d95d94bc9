//! Who vouches for plugins: public keys, what each signer may offer, and what the signatures of a plugin come to. Values only: nothing
//! here checks a signature.

use std::fmt;
use std::str::FromStr;

use globset::{GlobBuilder, GlobMatcher};
use serde::Serialize;

use crate::failure::one_line;

mod key;

pub use self::key::{BadSignerKey, KEY_TEXT_BYTES_MAX, MINISIGN_KEY_ID_BYTES, SignerKey};

/// Maximum length of a signer's name.
pub const SIGNER_NAME_CHARS_MAX: usize = 64;

/// Most bytes of a pattern over references.
const OFFER_BYTES_MAX: usize = 1024;

/// What the operator decided about the signatures of plugins (`plugins.trust`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SignaturePolicy {
    /// What becomes of a plugin that no known signer signed.
    pub unsigned: UnsignedRule,
    /// Who may sign, in the order of the file. Several may offer the same, and have the same key.
    pub signers: Vec<Signer>,
}

/// What becomes of a plugin that no known signer signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UnsignedRule {
    /// It is used as any other.
    #[default]
    Allow,
    /// It is used after its operator agreed to exactly this one.
    Ask,
    /// It is not used.
    Refuse,
}

/// One key, whose it is, and what it may vouch for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    /// What the operator calls it: 1 to 64 of `A-Z a-z 0-9 _ . @ -`.
    pub name: String,
    /// The public key.
    pub key: SignerKey,
    /// References that it may sign; empty is nothing.
    pub offers: Vec<OfferPattern>,
    /// From when on nothing it signed is accepted, in Unix milliseconds.
    pub expires_at_ms: Option<i64>,
    /// Nothing its key ever signed is accepted, for this signer or another with that key. It stays in the list so that what it signed is told
    /// from what nobody signed.
    pub is_revoked: bool,
}

/// A glob over references without tag and digest: `*` is any text without `/`, `**` any text; a lone `*` is everything.
#[derive(Clone)]
pub struct OfferPattern {
    text: String,
    matcher: GlobMatcher,
}

/// Why a text is no pattern over references.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadOfferPattern(String);

/// What the signatures of a plugin come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignatureVerdict {
    /// A signer that may offer it signed exactly this.
    Signed(SignedBy),
    /// No known signer signed it.
    Unsigned {
        /// The signatures it has all the same, and why each of them says nothing: `a signature by minisign …, which is no known key`.
        passed_over: Vec<String>,
    },
    /// It carries a signature that must not be passed over: a known key did not make it, or may not vouch for this.
    Refused(SignatureRefusal),
}

/// A signature that counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SignedBy {
    /// The signer's name in the configuration.
    pub signer: String,
    /// The key, as people compare it: `minisign E7620F1842B4E81F`.
    pub key: String,
    /// The version that was signed, where the signature says one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When it was signed, as the signer says, in Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_at_ms: Option<i64>,
    /// When the signature stops counting, in Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<i64>,
}

/// Why a signature is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {remedy}")]
pub struct SignatureRefusal {
    /// One sentence without a full stop.
    pub problem: String,
    /// The key or the command that would allow it.
    pub remedy: String,
}

impl SignaturePolicy {
    /// The signer that revokes this key, whichever others have it and in whichever form.
    pub fn revoker(&self, key: &SignerKey) -> Option<&Signer> {
        let mut signers = self.signers.iter();
        signers.find(|signer| signer.is_revoked && signer.key.is_same(key))
    }
}

impl SignatureVerdict {
    /// A plugin without any signature.
    pub fn unsigned() -> Self {
        Self::Unsigned {
            passed_over: Vec::new(),
        }
    }

    /// Who signed it.
    pub fn signed_by(&self) -> Option<&SignedBy> {
        match self {
            Self::Signed(by) => Some(by),
            Self::Unsigned { .. } | Self::Refused(_) => None,
        }
    }

    /// Why the plugin may not be used; `None` when it may.
    ///
    /// Shape: `agreement` is how the operator can agree to this very plugin, or none if that was done.
    pub fn refusal(&self, rule: UnsignedRule, agreement: Option<&str>) -> Option<SignatureRefusal> {
        let passed_over = match self {
            Self::Signed(_) => return None,
            Self::Refused(refusal) => return Some(refusal.clone()),
            Self::Unsigned { passed_over } => passed_over,
        };
        let problem = match passed_over.as_slice() {
            [] => "it is not signed".to_owned(),
            some => format!("no known signer signed it: it has {}", some.join(", and ")),
        };
        let remedy = match (rule, agreement) {
            (UnsignedRule::Allow, _) | (UnsignedRule::Ask, None) => return None,
            (UnsignedRule::Ask, Some(agreement)) => format!(
                "{agreement} accepts it all the same (`plugins.trust.unsigned` is \"ask\")"
            ),
            (UnsignedRule::Refuse, _) => "name its signer in `[[plugins.trust.signers]]`, or set `plugins.trust.unsigned` to \"ask\" (it is \"refuse\")".to_owned(),
        };
        Some(SignatureRefusal { problem, remedy })
    }
}

impl Signer {
    /// What is wrong with a name, in one sentence; `None` when nothing is.
    pub fn name_problem(name: &str) -> Option<String> {
        let fits = |char: char| char.is_ascii_alphanumeric() || "_.@-".contains(char);
        let length = name.chars().count();
        if (1..=SIGNER_NAME_CHARS_MAX).contains(&length) && name.chars().all(fits) {
            return None;
        }
        let shown = one_line(name, SIGNER_NAME_CHARS_MAX);
        Some(format!(
            "`{shown}` is not the name of a signer: 1 to {SIGNER_NAME_CHARS_MAX} of `A-Z a-z 0-9 _ . @ -`"
        ))
    }

    /// Whether it may sign what has this reference, without tag and digest.
    pub fn offers(&self, reference: &str) -> bool {
        self.offers.iter().any(|offer| offer.matches(reference))
    }
}

impl OfferPattern {
    /// Whether it stands for `reference`, which has no tag and no digest.
    pub fn matches(&self, reference: &str) -> bool {
        self.matcher.is_match(reference)
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for OfferPattern {
    type Err = BadOfferPattern;

    fn from_str(text: &str) -> Result<Self, BadOfferPattern> {
        let bad = |problem: &str| BadOfferPattern(format!("`{}`: {problem}", one_line(text, 200)));
        if text.is_empty() || text.len() > OFFER_BYTES_MAX {
            return Err(bad(&format!("a pattern has 1 to {OFFER_BYTES_MAX} bytes")));
        }
        if text
            .chars()
            .any(|char| char.is_control() || char.is_whitespace())
        {
            return Err(bad("a reference has no blanks"));
        }
        let pattern = if text == "*" { "**" } else { text };
        let glob = GlobBuilder::new(&any_text(pattern))
            .literal_separator(true)
            .build();
        let glob = glob.map_err(|error| bad(&error.kind().to_string()))?;
        Ok(Self {
            text: text.to_owned(),
            matcher: glob.compile_matcher(),
        })
    }
}

/// A pattern of which every `**` is any text: a glob has that only where it stands between slashes, elsewhere it ends at a `/` as `*` does.
fn any_text(pattern: &str) -> String {
    let mut rewritten = String::new();
    let mut rest = pattern;
    while let Some(at) = rest.find("**") {
        let (before, stars) = rest.split_at(at);
        rest = stars.trim_start_matches('*');
        rewritten.push_str(before);
        let is_part = rewritten.is_empty() || rewritten.ends_with('/');
        rewritten.push_str(
            match is_part && (rest.is_empty() || rest.starts_with('/')) {
                true => "**",
                false => "{*,*/**/*}",
            },
        );
    }
    rewritten + rest
}

impl fmt::Debug for OfferPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl fmt::Display for OfferPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for OfferPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for OfferPattern {}

#[cfg(test)]
mod tests;
