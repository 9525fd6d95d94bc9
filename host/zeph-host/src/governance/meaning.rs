//! Learned sequences compared with calls by what they mean, where a model gives texts vectors.

use std::fmt::Debug;
use std::sync::Arc;

use zeph_agent::Pending;
use zeph_agent::budget::CallMeter;
use zeph_agent::embedding::cosine;
use zeph_core::policy::{NearSequence, SequenceOrigin};

use super::known::KnownSequences;

/// The vectors of two lists of texts, each in its order.
pub(crate) type TextVectors = (Vec<Vec<f32>>, Vec<Vec<f32>>);

/// Gives texts vectors of a cosine near 1 where they mean something alike.
pub(crate) trait VectorSource: Debug + Send + Sync {
    /// The vectors of `texts`, and of `kept`, which come again. None when there is no answer in time: words are compared then. What it
    /// took is counted by `meter`.
    fn vectors<'a>(
        &'a self,
        texts: Vec<String>,
        kept: Vec<String>,
        meter: Option<&'a CallMeter>,
    ) -> Pending<'a, Option<TextVectors>>;
}

/// The learned sequence that is nearest to one of `texts`; none without a learned one, `Err` when there are no vectors.
pub(super) async fn nearest(
    source: &dyn VectorSource,
    known: &Arc<KnownSequences>,
    texts: Vec<String>,
    meter: Option<&CallMeter>,
) -> Result<Option<NearSequence>, NoVectors> {
    let learned = known
        .vectors
        .get_or_try_init(|| learned(source, known, meter));
    let learned = learned.await?;
    if learned.is_empty() {
        return Ok(None);
    }
    let (texts, _) = source
        .vectors(texts, Vec::new(), meter)
        .await
        .ok_or(NoVectors)?;
    let near = learned.iter().flat_map(|(id, vector)| {
        texts.iter().map(move |text| NearSequence {
            id: *id,
            similarity: cosine(vector, text),
        })
    });
    Ok(near.max_by(|one, other| one.similarity.total_cmp(&other.similarity)))
}

/// A model gave no vectors.
#[derive(Debug)]
pub(super) struct NoVectors;

/// The vectors of the learned sequences, by their numbers.
async fn learned(
    source: &dyn VectorSource,
    known: &KnownSequences,
    meter: Option<&CallMeter>,
) -> Result<Vec<(i64, Vec<f32>)>, NoVectors> {
    let mut ids = Vec::new();
    let mut texts = Vec::new();
    for sequence in known.set.sequences() {
        if let SequenceOrigin::Learned { id, .. } = sequence.origin() {
            ids.push(*id);
            texts.push(sequence.words().join(" "));
        }
    }
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let vectors = source.vectors(Vec::new(), texts, meter).await;
    let (_, vectors) = vectors.ok_or(NoVectors)?;
    Ok(ids.into_iter().zip(vectors).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use zeph_agent::Pending;
    use zeph_agent::budget::CallMeter;
    use zeph_core::id::CallId;
    use zeph_core::policy::{LearnedCause, Mode, Sequence, SequenceOrigin, SequenceSet};

    use super::super::known::KnownSequences;
    use super::{TextVectors, VectorSource, nearest};

    /// Two directions: what removes something, and everything else; none at all when it is not there.
    #[derive(Debug)]
    struct Directions {
        is_there: bool,
    }

    impl VectorSource for Directions {
        fn vectors<'a>(
            &'a self,
            texts: Vec<String>,
            kept: Vec<String>,
            _meter: Option<&'a CallMeter>,
        ) -> Pending<'a, Option<TextVectors>> {
            let of = |text: &String| match text.contains("rm") || text.contains("unlink") {
                true => vec![1.0, 0.1],
                false => vec![0.0, 1.0],
            };
            let of_all = |texts: &[String]| texts.iter().map(of).collect();
            let vectors = (of_all(&texts), of_all(&kept));
            let is_there = self.is_there;
            Box::pin(async move { is_there.then_some(vectors) })
        }
    }

    fn known() -> Arc<KnownSequences> {
        let origin = SequenceOrigin::Learned {
            id: 7,
            cause: LearnedCause::Revoked,
            call: CallId::new(),
        };
        let words = ["bash", "rm", "x"].map(str::to_owned);
        let sequence = Sequence::new(&words, Mode::Deny, origin).unwrap();
        Arc::new(KnownSequences {
            set: SequenceSet::new(vec![sequence]),
            version: 1,
            vectors: Default::default(),
        })
    }

    #[tokio::test]
    async fn what_means_the_same_is_near_whatever_its_words() {
        let source = Directions { is_there: true };
        let known = known();
        let near = nearest(&source, &known, vec!["bash unlink y".to_owned()], None).await;
        let near = near.unwrap().unwrap();
        assert_eq!(near.id, 7);
        assert!(near.similarity > 0.99, "{near:?}");
        let far = nearest(&source, &known, vec!["bash ls".to_owned()], None).await;
        assert!(far.unwrap().unwrap().similarity < 0.2);
    }

    #[tokio::test]
    async fn without_vectors_nothing_is_compared() {
        let source = Directions { is_there: false };
        let near = nearest(&source, &known(), vec!["bash rm x".to_owned()], None).await;
        assert!(near.is_err());
    }
}
