//! What credentials look like, provider by provider. Tables and nothing else.
//!
//! The formats are those the providers document, with their prefixes and lengths; a prefix of few letters needs a value that
//! looks random as well. What is written `{n,}` there has an upper limit here, so that a line costs what it is long.
//!
//! Sources: the default rules of gitleaks 8 (`config/gitleaks.toml`, MIT), in which the formats of most providers are collected;
//! the list of GitHub's secret scanning (docs.github.com, "Supported secret scanning patterns"); "Token formats" of
//! developers.cloudflare.com; the identifiable keys of Azure (`microsoft/security-utilities`); for the models' providers, the
//! form of the keys that their consoles give out.

mod cloud;
mod development;
mod general;
mod service;

use std::sync::LazyLock;

/// What a match has to be besides matching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// Nothing: the prefix and the length say enough.
    Shape,
    /// It looks random.
    Random,
    /// It looks random, and not like a name in code: what stands before it does there, too.
    NoName,
    /// It looks like a value someone chose to be hard to guess, not like code or a placeholder.
    Value,
    /// As [`Value`](Self::Value), of a value in quotes that holds signs which end or explain others.
    Quoted,
    /// It is no placeholder.
    Word,
    /// What follows it is a password and the name of a host.
    Url,
}

/// One kind of credential.
#[derive(Debug)]
pub(super) struct Shape {
    /// As the warning names it.
    pub(super) kind: &'static str,
    /// What a line must hold for `pattern` to be tried, as [`Hint`](super::hint::Hint) reads it, or [`DOTTED`]: a whole text is searched for all of
    /// them at once.
    pub(super) hint: &'static str,
    /// The credential; the first group, if there is one, is the part that is secret.
    pub(super) pattern: &'static str,
    pub(super) check: Check,
}

/// The hint of what holds no word of its own: many characters, a full stop, six characters, a full stop.
pub(super) const DOTTED: &str = "";

const fn shape(
    kind: &'static str,
    hint: &'static str,
    pattern: &'static str,
    check: Check,
) -> Shape {
    Shape {
        kind,
        hint,
        pattern,
        check,
    }
}

/// Every kind, the more special before the more general.
pub(super) static SHAPES: LazyLock<Vec<&'static Shape>> = LazyLock::new(|| {
    let tables = [
        cloud::SHAPES,
        development::SHAPES,
        service::SHAPES,
        general::SHAPES,
    ];
    tables.into_iter().flatten().collect()
});
