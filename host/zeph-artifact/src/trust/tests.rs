use zeph_core::id::Digest;
use zeph_core::signer::{SignaturePolicy, SignatureVerdict, Signer, SignerKey, UnsignedRule};

use super::{SignatureFiles, SignedSubject, judge};
use crate::document::DigestDocument;
use crate::signature::comment::SignedFacts;
use crate::signature::secret::SecretKey;

mod bundles;

/// 2026-11-23T00:00:00Z.
const NOW: i64 = 1_795_392_000;

fn digest(of: u8) -> Digest {
    let digits = format!("{of:02x}").repeat(32);
    format!("sha256:{digits}").parse().unwrap()
}

fn document(component: u8) -> DigestDocument {
    DigestDocument {
        component: digest(component),
        manifest: digest(2),
        definitions: digest(3),
    }
}

fn key() -> SecretKey {
    SecretKey::generate().unwrap()
}

fn signer(name: &str, key: SignerKey) -> Signer {
    Signer {
        name: name.to_owned(),
        key,
        offers: vec!["ghcr.io/acme/*".parse().unwrap()],
        expires_at_ms: None,
        is_revoked: false,
    }
}

fn policy(signers: Vec<Signer>) -> SignaturePolicy {
    SignaturePolicy {
        unsigned: UnsignedRule::Refuse,
        signers,
    }
}

fn facts() -> SignedFacts {
    SignedFacts {
        name: Some("weather".to_owned()),
        version: Some("1.2.0".to_owned()),
        signed_at: Some(NOW - 60),
        expires_at: None,
    }
}

fn signed(key: &SecretKey, document: &DigestDocument, facts: &SignedFacts) -> Vec<u8> {
    let comment = facts.write().unwrap();
    let signature = key.sign(document.text().as_bytes(), "", &comment);
    signature.to_text().into_bytes()
}

fn files(minisign: Vec<Vec<u8>>) -> SignatureFiles {
    SignatureFiles {
        minisign,
        ..SignatureFiles::default()
    }
}

const REFERENCE: &str = "ghcr.io/acme/weather";

fn verdict_of(
    policy: &SignaturePolicy,
    (reference, document): (&str, &DigestDocument),
    files: &SignatureFiles,
    now: i64,
) -> SignatureVerdict {
    let subject = SignedSubject {
        reference,
        name: "weather",
        document: Some(document),
        version: Some("1.2.0"),
        manifest: None,
    };
    judge(policy, &subject, files, now * 1000)
}

fn verdict(policy: &SignaturePolicy, files: Vec<Vec<u8>>) -> SignatureVerdict {
    verdict_of(policy, (REFERENCE, &document(1)), &self::files(files), NOW)
}

fn refused(verdict: SignatureVerdict) -> String {
    match verdict {
        SignatureVerdict::Refused(refusal) => refusal.to_string(),
        other => panic!("not refused: {other:?}"),
    }
}

fn signer_of(verdict: &SignatureVerdict) -> &str {
    match verdict {
        SignatureVerdict::Signed(by) => &by.signer,
        other => panic!("not signed: {other:?}"),
    }
}

#[test]
fn a_good_signature_of_a_signer_that_may_offer_it_counts() {
    let key = key();
    let policy = policy(vec![signer("acme", key.public())]);
    let good = verdict(&policy, vec![signed(&key, &document(1), &facts())]);
    let SignatureVerdict::Signed(by) = good else {
        panic!("{good:?}")
    };
    assert_eq!(
        (by.signer.as_str(), by.version.as_deref()),
        ("acme", Some("1.2.0"))
    );
    assert_eq!(by.signed_at_ms, Some((NOW - 60) * 1000));
    // One that says nothing besides, as the program minisign makes it.
    let bare = key.sign(
        document(1).text().as_bytes(),
        "",
        "timestamp:1\tfile:x\thashed",
    );
    let bare = verdict(&policy, vec![bare.to_text().into_bytes()]);
    assert_eq!(signer_of(&bare), "acme");
}

/// One line that revokes a key revokes it for every signer, in whichever order and form they stand.
#[test]
fn a_key_that_is_revoked_once_is_revoked() {
    let key = key();
    let SignerKey::Minisign { key: bytes, .. } = key.public() else {
        unreachable!("a key of minisign")
    };
    for form in [key.public(), SignerKey::Ed25519(bytes)] {
        let revoked = Signer {
            is_revoked: true,
            offers: Vec::new(),
            ..signer("gone", form)
        };
        let known = signer("acme", key.public());
        for signers in [[known.clone(), revoked.clone()], [revoked, known]] {
            let verdict = verdict(
                &policy(signers.to_vec()),
                vec![signed(&key, &document(1), &facts())],
            );
            let told = refused(verdict);
            assert!(
                told.contains("revoked key") && told.contains("`gone`"),
                "{told}"
            );
        }
    }
}

/// Any change of what was signed: component, manifest, definitions, or all of it.
#[test]
fn a_signature_of_something_else_is_refused() {
    let key = key();
    let policy = policy(vec![signer("acme", key.public())]);
    let file = signed(&key, &document(1), &facts());
    let this = document(1);
    for changed in [
        DigestDocument {
            component: digest(9),
            ..this
        },
        DigestDocument {
            manifest: digest(9),
            ..this
        },
        DigestDocument {
            definitions: digest(9),
            ..this
        },
        DigestDocument {
            manifest: this.definitions,
            definitions: this.manifest,
            ..this
        },
    ] {
        let verdict = verdict_of(
            &policy,
            (REFERENCE, &changed),
            &files(vec![file.clone()]),
            NOW,
        );
        assert!(refused(verdict).contains("does not match"), "{changed:?}");
    }
}

#[test]
fn unsigned_and_signed_by_strangers_is_unsigned() {
    let (known, stranger) = (key(), key());
    let policy = policy(vec![signer("acme", known.public())]);
    assert_eq!(verdict(&policy, Vec::new()), SignatureVerdict::unsigned());
    let by_stranger = verdict(&policy, vec![signed(&stranger, &document(1), &facts())]);
    let SignatureVerdict::Unsigned { passed_over } = &by_stranger else {
        panic!("{by_stranger:?}")
    };
    assert!(
        passed_over[0].contains("which is no known key"),
        "{passed_over:?}"
    );
    let told = by_stranger
        .refusal(UnsignedRule::Refuse, None)
        .unwrap()
        .to_string();
    assert!(
        told.contains("plugins.trust.signers") && told.contains("no known signer"),
        "{told}"
    );
    let ask = by_stranger.refusal(UnsignedRule::Ask, Some("`zeph-host plugin approve x`"));
    assert!(
        ask.unwrap()
            .to_string()
            .contains("`zeph-host plugin approve x`")
    );
    assert_eq!(by_stranger.refusal(UnsignedRule::Ask, None), None);
    assert_eq!(by_stranger.refusal(UnsignedRule::Allow, Some("x")), None);
}

#[test]
fn a_signer_vouches_for_what_it_may_offer_alone() {
    let key = key();
    let policy = policy(vec![signer("acme", key.public())]);
    let file = signed(&key, &document(1), &facts());
    for reference in [
        "ghcr.io/other/weather",
        "file:weather",
        "ghcr.io/acme/team/weather",
        "https://ghcr.io/acme/weather",
    ] {
        let verdict = verdict_of(
            &policy,
            (reference, &document(1)),
            &files(vec![file.clone()]),
            NOW,
        );
        let told = refused(verdict);
        assert!(
            told.contains(&format!("may not offer `{reference}`")) && told.contains("`offers`"),
            "{told}"
        );
    }
    // Nothing, where it offers nothing.
    let mut silent = signer("acme", key.public());
    silent.offers.clear();
    let told = refused(verdict(&self::policy(vec![silent]), vec![file]));
    assert!(told.contains("may not offer"), "{told}");
}

#[test]
fn expiry_counts_from_the_moment_that_is_named() {
    let key = key();
    let at = |signer_ms: Option<i64>, signature: Option<i64>, now: i64| {
        let mut signer = signer("acme", key.public());
        signer.expires_at_ms = signer_ms;
        let facts = SignedFacts {
            expires_at: signature,
            ..facts()
        };
        let files = files(vec![signed(&key, &document(1), &facts)]);
        verdict_of(
            &policy(vec![signer]),
            (REFERENCE, &document(1)),
            &files,
            now,
        )
    };
    assert!(refused(at(Some(NOW * 1000), None, NOW)).contains("the key of `acme`"));
    assert!(
        refused(at(None, Some(NOW), NOW))
            .contains("the signature of `acme` expired on 2026-11-23T00:00:00Z")
    );
    for now in [NOW + 1, i64::MAX / 1000] {
        assert!(refused(at(Some(NOW * 1000), None, now)).contains("expired"));
        assert!(refused(at(None, Some(NOW), now)).contains("expired"));
    }
    for now in [NOW - 1, 0, -1] {
        let good = at(Some(NOW * 1000), Some(NOW + 5), now);
        let SignatureVerdict::Signed(by) = good else {
            panic!("{good:?}")
        };
        assert_eq!(by.expires_at_ms, Some(NOW * 1000), "the earlier of the two");
    }
    assert!(refused(at(Some(i64::MIN), None, NOW)).contains("expired"));
    assert_eq!(
        signer_of(&at(Some(i64::MAX), Some(i64::MAX / 1000), NOW)),
        "acme"
    );
}

#[test]
fn a_revoked_key_is_told_from_an_unknown_one() {
    let (old, new) = (key(), key());
    let mut revoked = signer("acme-2025", old.public());
    revoked.is_revoked = true;
    let policy = policy(vec![revoked, signer("acme-2026", new.public())]);
    let by_old = signed(&old, &document(1), &facts());
    let told = refused(verdict(&policy, vec![by_old.clone()]));
    assert!(
        told.contains("`acme-2025` with a revoked key") && told.contains("`revoked`"),
        "{told}"
    );
    // Keys rotate: a plugin may carry both.
    let by_new = signed(&new, &document(1), &facts());
    let both = [by_old.clone(), by_new.clone()].concat();
    for files in [
        vec![both],
        vec![by_old.clone(), by_new.clone()],
        vec![by_new, by_old],
    ] {
        assert_eq!(signer_of(&verdict(&policy, files)), "acme-2026");
    }
}

#[test]
fn of_two_signatures_a_bad_one_neither_hides_nor_helps() {
    let (acme, other) = (key(), key());
    let policy = policy(vec![
        signer("acme", acme.public()),
        signer("other", other.public()),
    ]);
    let good = signed(&acme, &document(1), &facts());
    let stale = signed(&other, &document(7), &facts());
    let broken = b"untrusted comment: x\n".to_vec();
    for files in [
        vec![stale.clone(), good.clone()],
        vec![good.clone(), stale.clone()],
        vec![broken.clone(), good.clone()],
    ] {
        assert_eq!(signer_of(&verdict(&policy, files)), "acme");
    }
    assert!(refused(verdict(&policy, vec![stale.clone()])).contains("`other`"));
    assert!(refused(verdict(&policy, vec![stale, broken.clone()])).contains("does not match"));
    assert!(refused(verdict(&policy, vec![broken])).contains("cannot be read"));
    let cut = good[..good.len() - 40].to_vec();
    assert!(refused(verdict(&policy, vec![cut])).contains("cannot be read"));
}

/// Everything that a signer says is about one plugin and one version.
#[test]
fn a_signature_names_its_plugin_and_its_version() {
    let key = key();
    let policy = policy(vec![signer("acme", key.public())]);
    let with = |facts: SignedFacts| verdict(&policy, vec![signed(&key, &document(1), &facts)]);
    let named = with(SignedFacts {
        name: Some("danger".to_owned()),
        ..facts()
    });
    assert!(refused(named).contains("as the plugin `danger`"));
    let older = with(SignedFacts {
        version: Some("1.1.0".to_owned()),
        ..facts()
    });
    assert!(refused(older).contains("as version 1.1.0, and it says it is 1.2.0"));
    let case = with(SignedFacts {
        name: Some("Weather".to_owned()),
        ..facts()
    });
    assert!(refused(case).contains("`Weather`"));
}

#[test]
fn a_comment_that_says_two_things_says_nothing() {
    let key = key();
    let policy = policy(vec![signer("acme", key.public())]);
    for comment in [
        "expires:1\texpires:9999999999",
        "name:weather\tname:danger",
        "expires:-1",
        "expires:9223372036854775807",
        "expires:",
        "timestamp:1e9",
        "name:",
        "name:wea\u{202e}ther",
        "version:1.2.0 ",
    ] {
        let file = key
            .sign(document(1).text().as_bytes(), "", comment)
            .to_text();
        let told = refused(verdict(&policy, vec![file.into_bytes()]));
        assert!(
            told.contains("comment that `acme` signed is wrong"),
            "{comment}: {told}"
        );
    }
}

/// Two signers may have one key, with different rights, and one number may be that of two keys.
#[test]
fn every_signer_with_the_key_is_asked() {
    let (shared, twin) = (key(), key());
    let mut narrow = signer("narrow", shared.public());
    narrow.offers = vec!["ghcr.io/other/*".parse().unwrap()];
    let SignerKey::Minisign { id, .. } = shared.public() else {
        panic!()
    };
    let SignerKey::Minisign { key: twin_key, .. } = twin.public() else {
        panic!()
    };
    let collision = signer("twin", SignerKey::Minisign { id, key: twin_key });
    let wide = signer("wide", shared.public());
    let file = || vec![signed(&shared, &document(1), &facts())];
    let policy_of = |signers: Vec<Signer>| policy(signers);
    let all = policy_of(vec![collision.clone(), narrow.clone(), wide]);
    assert_eq!(signer_of(&verdict(&all, file())), "wide");
    let without = policy_of(vec![collision.clone(), narrow]);
    assert!(refused(verdict(&without, file())).contains("`narrow`"));
    assert!(refused(verdict(&policy_of(vec![collision]), file())).contains("`twin`"));
}

#[test]
fn what_is_kept_beside_a_component_says_the_same() {
    let (known, stranger) = (key(), key());
    let policy = policy(vec![signer("acme", known.public())]);
    let strangers = (0..12).map(|_| signed(&stranger, &document(1), &facts()));
    let mut found = files(strangers.collect());
    found.minisign.push(b"no signature".to_vec());
    found.minisign.truncate(13);
    found.minisign.push(signed(&known, &document(1), &facts()));
    let kept = SignatureFiles::kept(found.minisign_file(&policy).as_deref(), None);
    let verdict = verdict_of(&policy, (REFERENCE, &document(1)), &kept, NOW);
    assert_eq!(signer_of(&verdict), "acme");
    assert_eq!(files(vec![b"x".to_vec()]).minisign_file(&policy), None);
}
