//! Vectors of texts that come again and again, such as definitions of tools: a model is asked for each once.
//!
//! They are a cache: what is forgotten is asked for again.

use zeph_core::id::Digest;

use crate::error::StoreError;
use crate::store::{Access, Store};

/// Most vectors that are kept; those that were not used for longest go first.
pub const VECTORS_MAX: u32 = 4_096;

/// Bytes of a vector at most. A longer one is not kept.
pub const VECTOR_BYTES_MAX: usize = 64 * 1024;

impl Store {
    /// The vectors of these digests, in their order, as far as they are kept; they count as used at `at_ms`.
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn vectors(
        &self,
        digests: Vec<Digest>,
        at_ms: i64,
    ) -> Result<Vec<Option<Vec<f32>>>, StoreError> {
        self.run("read vectors", Access::Write, move |operations| {
            operations.vectors(&digests, at_ms)
        })
        .await
    }

    /// Keeps vectors, each by the digest of its model and text; one that is there is replaced.
    ///
    /// Errors: [`StoreError`] when they cannot be recorded.
    pub async fn keep_vectors(
        &self,
        vectors: Vec<(Digest, Vec<f32>)>,
        at_ms: i64,
    ) -> Result<(), StoreError> {
        self.run("keep vectors", Access::Write, move |operations| {
            operations.keep_vectors(&vectors, at_ms)
        })
        .await
    }
}

/// A vector as it is kept; none for one that is too long.
pub(crate) fn bytes_of(vector: &[f32]) -> Option<Vec<u8>> {
    let numbers = vector.iter();
    let bytes: Vec<u8> = numbers.flat_map(|number| number.to_le_bytes()).collect();
    (bytes.len() <= VECTOR_BYTES_MAX).then_some(bytes)
}

/// None for bytes that are no vector: it is asked for again.
pub(crate) fn numbers_of(bytes: &[u8]) -> Option<Vec<f32>> {
    let (numbers, rest) = bytes.as_chunks::<4>();
    let numbers: Vec<f32> = numbers
        .iter()
        .map(|number| f32::from_le_bytes(*number))
        .collect();
    let is_vector = rest.is_empty() && numbers.iter().all(|number| number.is_finite());
    is_vector.then_some(numbers)
}
