//! Vectors of passages that plugins search by meaning, such as parts of source files, each under a key of its plugin's choice.
//!
//! Texts are not kept, and what is forgotten is asked for again. A vector is kept with one byte for each number, which is as exact as
//! a ranking needs and a quarter of the size.

use zeph_core::id::Digest;

use crate::error::StoreError;
use crate::store::{Access, Store};

/// Most vectors that are kept of all plugins; those that were not used for longest go first. With 1,024 numbers each they take some
/// 110 MB.
pub const PASSAGES_MAX: u32 = 100_000;

/// Most numbers of a vector. A longer one is not kept.
pub const PASSAGE_NUMBERS_MAX: usize = 16 * 1024;

/// How much older the last use has to be for a new one to be written down: a day.
pub(crate) const USE_STEP_MS: i64 = 24 * 60 * 60 * 1_000;

/// A vector as it is kept: only its direction counts. The default has none, and is near to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PassageVector(Vec<u8>);

impl PassageVector {
    /// Of the numbers of a model; none for a vector without a direction, or of more than [`PASSAGE_NUMBERS_MAX`] numbers.
    pub fn new(numbers: &[f32]) -> Option<Self> {
        let largest = numbers.iter().fold(0.0_f32, |max, one| max.max(one.abs()));
        let is_vector = numbers.iter().all(|number| number.is_finite()) && largest > 0.0;
        if !is_vector || numbers.len() > PASSAGE_NUMBERS_MAX {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most 127 by its scale")]
        let byte = |number: &f32| (number / largest * 127.0).round() as i8;
        let bytes = numbers.iter().map(|number| byte(number).cast_unsigned());
        Some(Self(bytes.collect()))
    }

    /// As it lies in the database.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The cosine with a vector that is kept; none when they are of two models.
    pub(crate) fn cosine(&self, kept: &[u8]) -> Option<f32> {
        if kept.len() != self.0.len() {
            return None;
        }
        let (mut product, mut square, mut other_square) = (0_i64, 0_i64, 0_i64);
        for (one, other) in self.0.iter().zip(kept) {
            let (one, other) = (i32::from(one.cast_signed()), i32::from(other.cast_signed()));
            product += i64::from(one * other);
            square += i64::from(one * one);
            other_square += i64::from(other * other);
        }
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "a cosine, for an order"
        )]
        let cosine = (product as f64 / ((square as f64) * (other_square as f64)).sqrt()) as f32;
        cosine.is_finite().then_some(cosine.clamp(-1.0, 1.0))
    }
}

/// The best of what is compared with a query.
pub(crate) struct NearestPassages<'a> {
    query: &'a PassageVector,
    max: usize,
    found: Vec<(u32, f32)>,
}

impl<'a> NearestPassages<'a> {
    pub(crate) fn new(query: &'a PassageVector, max: usize) -> Self {
        Self {
            query,
            max,
            found: Vec::new(),
        }
    }

    /// Compares the vector of one place.
    pub(crate) fn add(&mut self, place: usize, vector: &[u8]) {
        let place = u32::try_from(place).ok();
        self.found.extend(place.zip(self.query.cosine(vector)));
    }

    /// Best first; of equals in the order of their places.
    pub(crate) fn best(mut self) -> Vec<(u32, f32)> {
        let order = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if self.found.len() > self.max && self.max > 0 {
            self.found.select_nth_unstable_by(self.max - 1, order);
        }
        self.found.truncate(self.max);
        self.found.sort_unstable_by(order);
        self.found
    }
}

impl Store {
    /// The places, from 0, of those `keys` in `space` that have no vector; the others count as used at `at_ms`.
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn missing_passages(
        &self,
        space: Digest,
        keys: Vec<u128>,
        at_ms: i64,
    ) -> Result<Vec<u32>, StoreError> {
        self.run(
            "read vectors of passages",
            Access::Write,
            move |operations| operations.missing_passages(&space, &keys, at_ms),
        )
        .await
    }

    /// Keeps vectors in `space`; one that is there is replaced.
    ///
    /// Errors: [`StoreError`] when they cannot be recorded.
    pub async fn keep_passages(
        &self,
        space: Digest,
        passages: Vec<(u128, PassageVector)>,
        at_ms: i64,
    ) -> Result<(), StoreError> {
        self.run(
            "keep vectors of passages",
            Access::Write,
            move |operations| operations.keep_passages(&space, &passages, at_ms),
        )
        .await
    }

    /// The places, from 0, of those `keys` in `space` whose vectors are nearest to `query`, with their cosines; at most `max`, best
    /// first.
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn nearest_passages(
        &self,
        space: Digest,
        keys: Vec<u128>,
        query: PassageVector,
        max: usize,
    ) -> Result<Vec<(u32, f32)>, StoreError> {
        self.run(
            "compare vectors of passages",
            Access::Read,
            move |operations| operations.nearest_passages(&space, &keys, (&query, max)),
        )
        .await
    }
}
