//! Texts compared by their meaning, with the embedder that the operator granted by name (`[[embedder]]` in the manifest).
//!
//! Texts that are stored are sent to that provider, which may be on another machine. There is none natively.

use crate::bindings::zeph::plugin::embeddings as host;
pub use crate::bindings::zeph::plugin::embeddings::{Failure, FailureKind, Key, Near, Passage};

/// The provider and the model, when one is configured and granted.
pub fn embedder() -> Option<String> {
    match cfg!(target_family = "wasm") {
        true => host::embedder(),
        false => None,
    }
}

/// The places, from 0, of those keys for which no vector is stored.
///
/// Errors: no embedder is granted, there are too many keys, or the store cannot be used.
pub fn missing(keys: &[Key]) -> Result<Vec<u32>, Failure> {
    match cfg!(target_family = "wasm") {
        true => host::missing(keys),
        false => Err(not_here()),
    }
}

/// Sends texts to the provider and stores their vectors.
///
/// Errors: no embedder is granted, the texts are too many, a budget is used up, or the provider or the store does not answer.
pub fn store(passages: &[Passage]) -> Result<(), Failure> {
    match cfg!(target_family = "wasm") {
        true => host::store(passages),
        false => Err(not_here()),
    }
}

/// The texts among `keys` that are most like `query`, best first.
///
/// Errors: as [`store`].
pub fn nearest(query: &str, keys: &[Key], max: u32) -> Result<Vec<Near>, Failure> {
    match cfg!(target_family = "wasm") {
        true => host::nearest(query, keys, max),
        false => Err(not_here()),
    }
}

fn not_here() -> Failure {
    Failure {
        kind: FailureKind::Unavailable,
        message: "there is an embedder in a host only".to_owned(),
    }
}

impl From<u128> for Key {
    fn from(number: u128) -> Self {
        let half = |number: u128| u64::try_from(number & u128::from(u64::MAX)).unwrap_or_default();
        Self {
            high: half(number >> 64),
            low: half(number),
        }
    }
}
