//! What an earlier version kept of the keys that an index handed on: those keys, and of the keys of the configuration only the digest. While
//! the configuration still has them, they are known, and what was revoked stays so.

use sha2::{Digest as _, Sha256};
use zeph_core::id::Digest;
use zeph_core::signer::{Signer, SignerKey};
use zeph_store::SeenIndex;

/// The index with the keys of the configuration in place of their digest; with none where they cannot be known any more, or handed on none.
pub(super) fn with_keys(mut seen: SeenIndex, signers: &[Signer], now_ms: i64) -> SeenIndex {
    let [configured] = seen.configured.as_slice() else {
        return seen;
    };
    let Ok(digest) = configured.parse::<Digest>() else {
        return seen;
    };
    let offering = signers.iter();
    let offering = offering.filter(|signer| !signer.is_revoked && signer.offers(&seen.source));
    let all: Vec<&Signer> = offering.collect();
    let is_over = |signer: &Signer| signer.expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms);
    let valid = all.iter().filter(|signer| !is_over(signer));
    let valid = texts(valid.map(|signer| &signer.key));
    // One may have expired since then.
    let sets = [valid.clone(), texts(all.iter().map(|signer| &signer.key))];
    let known = sets.into_iter().find(|keys| digest_of(keys) == digest);
    seen.configured = known.filter(|_| !seen.keys.is_empty()).unwrap_or_default();
    // Which one began to hand on is not known: the first is taken for it, a valid one that left itself out if there is one.
    let keys = &seen.keys;
    seen.configured
        .sort_by_key(|key| (!valid.contains(key), keys.contains(key)));
    seen
}

/// The keys in the order in which their digest was made. Only those of minisign sign indexes, and are one line each.
fn texts<'k>(keys: impl Iterator<Item = &'k SignerKey>) -> Vec<String> {
    let mut texts: Vec<String> = keys.map(SignerKey::to_text).collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}

fn digest_of(keys: &[String]) -> Digest {
    Digest::new(Sha256::digest(keys.join("\n")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "https://example.com/index.json";
    const NOW_MS: i64 = 1_000;

    fn key(id: u8) -> SignerKey {
        SignerKey::Minisign {
            id: [id; 8],
            key: [id; 32],
        }
    }

    fn signer(id: u8, expires_at_ms: Option<i64>) -> Signer {
        Signer {
            name: format!("s{id}"),
            key: key(id),
            offers: vec!["**".parse().unwrap()],
            expires_at_ms,
            is_revoked: false,
        }
    }

    /// As an earlier version wrote it: the keys `1` and `2` of the configuration, and `handed_on`.
    fn earlier(handed_on: &[u8]) -> SeenIndex {
        SeenIndex {
            source: SOURCE.to_owned(),
            number: 3,
            document: Digest::new([7; 32]),
            keys: handed_on.iter().map(|id| key(*id).to_text()).collect(),
            configured: vec![digest_of(&texts([key(1), key(2)].iter())).to_string()],
        }
    }

    #[test]
    fn keys_that_an_earlier_version_kept_stay_known() {
        let text = |id| key(id).to_text();
        for (handed_on, signers, expected) in [
            (
                vec![1, 9],
                vec![signer(1, None), signer(2, None)],
                vec![text(2), text(1)],
            ),
            (
                vec![9],
                vec![signer(2, None), signer(1, Some(NOW_MS))],
                vec![text(2), text(1)],
            ),
            // Others than then: they counted before, too.
            (vec![9], vec![signer(1, None)], Vec::new()),
            (
                Vec::new(),
                vec![signer(1, None), signer(2, None)],
                Vec::new(),
            ),
        ] {
            let seen = with_keys(earlier(&handed_on), &signers, NOW_MS);
            assert_eq!(seen.configured, expected, "{handed_on:?} {signers:?}");
            assert_eq!(with_keys(seen.clone(), &signers, NOW_MS), seen);
        }
    }
}
