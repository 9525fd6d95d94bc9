//! Bundles of Sigstore made with keys of both kinds, and what can be done to them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use zeph_core::signer::{SignatureVerdict, SignerKey};

use super::{NOW, REFERENCE, policy, refused, signer, signer_of};
use crate::pulled::FoundSignature;
use crate::signature::sigstore::{BUNDLE_TYPE, BadBundle, Bundle, BundleVerdict};
use crate::trust::{SignatureFiles, SignedSubject, judge};

const MANIFEST: &[u8] = br#"{"schemaVersion":2}"#;

enum Pair {
    P256(Box<EcdsaKeyPair>),
    Ed25519(Ed25519KeyPair),
}

impl Pair {
    fn p256() -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random);
        Self::P256(Box::new(pair.unwrap()))
    }

    fn ed25519() -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap())
    }

    fn public(&self) -> SignerKey {
        match self {
            Self::P256(pair) => SignerKey::P256(pair.public_key().as_ref().try_into().unwrap()),
            Self::Ed25519(pair) => {
                SignerKey::Ed25519(pair.public_key().as_ref().try_into().unwrap())
            }
        }
    }

    fn sign(&self, message: &[u8]) -> String {
        STANDARD.encode(match self {
            Self::P256(pair) => pair
                .sign(&SystemRandom::new(), message)
                .unwrap()
                .as_ref()
                .to_vec(),
            Self::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
        })
    }

    fn material(&self) -> Value {
        let hint = STANDARD.encode(Sha256::digest(self.public().der()));
        json!({"publicKey": {"hint": hint}})
    }

    fn envelope(&self, payload: &str) -> Value {
        self.envelope_of("application/vnd.in-toto+json", payload)
    }

    fn envelope_of(&self, kind: &str, payload: &str) -> Value {
        let signed = format!("DSSEv1 {} {kind} {} {payload}", kind.len(), payload.len());
        json!({
            "mediaType": BUNDLE_TYPE,
            "verificationMaterial": self.material(),
            "dsseEnvelope": {
                "payload": STANDARD.encode(payload),
                "payloadType": kind,
                "signatures": [{"sig": self.sign(signed.as_bytes()), "keyid": ""}],
            },
        })
    }

    fn message(&self, bytes: &[u8]) -> Value {
        json!({
            "mediaType": BUNDLE_TYPE,
            "verificationMaterial": self.material(),
            "messageSignature": {
                "messageDigest": {"algorithm": "SHA2_256", "digest": STANDARD.encode(Sha256::digest(bytes))},
                "signature": self.sign(bytes),
            },
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// As `cosign sign` of version 3 states it.
fn statement(bytes: &[u8]) -> String {
    let digest = hex(bytes);
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"digest": {"sha256": digest}, "annotations": {}}],
        "predicateType": "https://sigstore.dev/cosign/sign/v1",
        "predicate": {},
    })
    .to_string()
}

fn verdict(key: SignerKey, bundles: Vec<Vec<u8>>) -> SignatureVerdict {
    let subject = SignedSubject {
        reference: REFERENCE,
        name: "weather",
        document: None,
        version: None,
        manifest: Some(MANIFEST),
    };
    let files = SignatureFiles {
        bundles,
        ..SignatureFiles::default()
    };
    judge(
        &policy(vec![signer("acme", key)]),
        &subject,
        &files,
        NOW * 1000,
    )
}

fn bytes(bundle: &Value) -> Vec<u8> {
    bundle.to_string().into_bytes()
}

#[test]
fn bundles_of_both_kinds_and_keys_count() {
    for pair in [Pair::p256(), Pair::ed25519()] {
        for bundle in [pair.message(MANIFEST), pair.envelope(&statement(MANIFEST))] {
            let good = verdict(pair.public(), vec![bytes(&bundle)]);
            assert_eq!(signer_of(&good), "acme");
        }
    }
}

#[test]
fn a_bundle_for_another_artifact_is_refused() {
    for pair in [Pair::p256(), Pair::ed25519()] {
        for bundle in [pair.message(b"other"), pair.envelope(&statement(b"other"))] {
            let told = refused(verdict(pair.public(), vec![bytes(&bundle)]));
            assert!(told.contains("does not match"), "{told}");
        }
        // The signature of one thing with the digest of another.
        let mut mixed = pair.message(b"other");
        mixed["messageSignature"]["messageDigest"] =
            pair.message(MANIFEST)["messageSignature"]["messageDigest"].clone();
        assert!(refused(verdict(pair.public(), vec![bytes(&mixed)])).contains("does not match"));
        let mut mixed = pair.envelope(&statement(b"other"));
        mixed["dsseEnvelope"]["payload"] = STANDARD.encode(statement(MANIFEST)).into();
        assert!(refused(verdict(pair.public(), vec![bytes(&mixed)])).contains("does not match"));
    }
}

#[test]
fn a_bundle_of_another_key_counts_as_none() {
    let (known, stranger) = (Pair::p256(), Pair::p256());
    let bundle = stranger.envelope(&statement(MANIFEST));
    let unsigned = verdict(known.public(), vec![bytes(&bundle)]);
    assert!(
        matches!(unsigned, SignatureVerdict::Unsigned { .. }),
        "{unsigned:?}"
    );
    // One that only says it is of the known key is a forgery.
    let mut forged = bundle;
    forged["verificationMaterial"] = known.material();
    assert!(refused(verdict(known.public(), vec![bytes(&forged)])).contains("does not match"));
    // What a bundle says of its key decides nothing.
    let mut renamed = known.envelope(&statement(MANIFEST));
    renamed["verificationMaterial"]["publicKey"]["hint"] = "another".into();
    assert_eq!(
        signer_of(&verdict(known.public(), vec![bytes(&renamed)])),
        "acme"
    );
}

/// The same key signs other statements, too: how something was built, what is wrong with it.
#[test]
fn a_statement_that_is_no_signature_is_none() {
    let pair = Pair::p256();
    let other = statement(MANIFEST).replace(
        "https://sigstore.dev/cosign/sign/v1",
        "https://slsa.dev/provenance/v1",
    );
    let kind = statement(MANIFEST).replace("Statement/v1", "Statement/v9");
    for bundle in [
        pair.envelope(&other),
        pair.envelope(&kind),
        pair.envelope_of("application/json", &statement(MANIFEST)),
    ] {
        let unsigned = verdict(pair.public(), vec![bytes(&bundle)]);
        assert!(
            matches!(unsigned, SignatureVerdict::Unsigned { .. }),
            "{unsigned:?}"
        );
    }
}

#[test]
fn bundles_that_are_not_read_are_named() {
    let pair = Pair::p256();
    let good = pair.message(MANIFEST);
    let with = |key: &str, value: Value| {
        let mut bundle = good.clone();
        bundle[key] = value;
        Bundle::read(&bytes(&bundle)).unwrap_err()
    };
    let old = with(
        "mediaType",
        "application/vnd.dev.sigstore.bundle+json;version=0.1".into(),
    );
    assert!(matches!(old, BadBundle::Version(_)) && old.to_string().contains("version=0.1"));
    let keyless = with(
        "verificationMaterial",
        json!({"certificate": {"rawBytes": "AAAA"}}),
    );
    assert_eq!(keyless, BadBundle::Keyless);
    assert!(keyless.to_string().contains("cosign sign --key"));
    let chain = json!({"x509CertificateChain": {"certificates": []}, "publicKey": {"hint": ""}});
    assert_eq!(with("verificationMaterial", chain), BadBundle::Keyless);
    for (key, value) in [
        ("verificationMaterial", json!({})),
        ("verificationMaterial", Value::Null),
        ("dsseEnvelope", pair.envelope("{}")["dsseEnvelope"].clone()),
        ("messageSignature", Value::Null),
        (
            "messageSignature",
            json!({"messageDigest": {"algorithm": "SHA2_512", "digest": ""}, "signature": ""}),
        ),
    ] {
        let bad = with(key, value);
        assert!(matches!(bad, BadBundle::Malformed(_)), "{key}: {bad}");
    }
    let mut two = pair.envelope(&statement(MANIFEST));
    let one = two["dsseEnvelope"]["signatures"][0].clone();
    two["dsseEnvelope"]["signatures"] = json!([one, one]);
    assert!(
        Bundle::read(&bytes(&two))
            .unwrap_err()
            .to_string()
            .contains("not exactly one signature")
    );
    let long = vec![b' '; 300 * 1024];
    assert!(
        Bundle::read(&long)
            .unwrap_err()
            .to_string()
            .contains("more than 262144 bytes")
    );
    let deep = "[".repeat(100_000);
    assert!(Bundle::read(deep.as_bytes()).is_err());
}

/// Programs differ in which of two they take, so neither counts.
#[test]
fn a_key_that_stands_twice_makes_it_no_bundle() {
    let pair = Pair::p256();
    let own = statement(MANIFEST);
    let digest = format!(r#""sha256":"{}""#, hex(MANIFEST));
    let other = format!(r#""sha256":"{}""#, hex(b"other"));
    let escaped = digest.replace("sha256", "sha\\u0032\\u00356");
    for twice in [
        own.replace(&digest, &format!("{other},{digest}")),
        own.replace(&digest, &format!("{other},{escaped}")),
        own.replace(r#""_type""#, r#""predicateType":"x","_type""#),
        own.replacen('{', r#"{"subject":[],"#, 1),
    ] {
        let bad = Bundle::read(&bytes(&pair.envelope(&twice))).unwrap_err();
        assert!(bad.to_string().contains("duplicate field"), "{bad}");
    }
    let text = pair.message(MANIFEST).to_string();
    let twice = text.replacen('{', r#"{"mediaType":"x","#, 1);
    assert!(
        Bundle::read(twice.as_bytes())
            .unwrap_err()
            .to_string()
            .contains("duplicate field")
    );
    let behind = format!("{text}{text}");
    assert!(Bundle::read(behind.as_bytes()).is_err());
}

#[test]
fn several_bundles_lie_behind_each_other() {
    let (acme, other) = (Pair::ed25519(), Pair::p256());
    let pretty = |bundle: &Value| serde_json::to_vec_pretty(bundle).unwrap();
    let found = SignatureFiles {
        bundles: vec![
            pretty(&other.message(MANIFEST)),
            b"no bundle".to_vec(),
            pretty(&other.message(b"x")),
            pretty(&acme.message(MANIFEST)),
        ],
        ..SignatureFiles::default()
    };
    let policy = policy(vec![signer("acme", acme.public())]);
    let file = found.bundles_file(&policy).unwrap();
    let kept = SignatureFiles::kept(None, Some(&file));
    assert_eq!(kept.bundles.len(), 3);
    assert_eq!(signer_of(&verdict(acme.public(), kept.bundles)), "acme");
    let broken = SignatureFiles::kept(None, Some(b"{} {"));
    assert_eq!(broken.bundles.len(), 2);
}

#[test]
fn signatures_of_registries_are_told_apart_by_type() {
    let found = |artifact_type: &str, media_type: &str| FoundSignature {
        artifact_type: artifact_type.to_owned(),
        media_type: media_type.to_owned(),
        bytes: vec![1].into(),
    };
    let simple = "application/vnd.dev.cosign.simplesigning.v1+json";
    let files = SignatureFiles::found(&[
        found(
            "application/vnd.zeph-host.signature.v1",
            "application/vnd.minisign",
        ),
        found("", "application/vnd.minisign"),
        found(BUNDLE_TYPE, BUNDLE_TYPE),
        found(simple, simple),
        found("application/x", "text/plain"),
    ]);
    assert_eq!((files.minisign.len(), files.bundles.len()), (2, 1));
    assert!(
        files.unread[0].contains("simple signing"),
        "{:?}",
        files.unread
    );
    assert!(
        files.unread[1].contains("`application/x`"),
        "{:?}",
        files.unread
    );
    let not_kept = files.not_kept();
    assert_eq!(not_kept.len(), 5, "{not_kept:?}");
    assert!(not_kept[2].contains("cannot be read"), "{not_kept:?}");
}

/// A bundle that the program cosign made with a key, from the conformance suite of Sigstore.
#[test]
fn a_bundle_of_cosign_is_read() {
    let key: SignerKey = include_str!("managed.pub").parse().unwrap();
    let bundle = Bundle::read(include_bytes!("managed.sigstore.json")).unwrap();
    assert!(bundle.means(&key));
    let artifact = include_bytes!("managed.txt");
    assert_eq!(bundle.check(&key, artifact), BundleVerdict::Signed);
    assert_eq!(bundle.check(&key, b"other"), BundleVerdict::NotOfKey);
    assert_eq!(
        bundle.check(&Pair::p256().public(), artifact),
        BundleVerdict::NotOfKey
    );
}

proptest! {
    #[test]
    fn no_text_brings_the_reader_down(bytes in prop::collection::vec(any::<u8>(), 0..300), text in "\\PC{0,200}") {
        drop(Bundle::read(&bytes));
        drop(Bundle::read(text.as_bytes()));
        drop(SignatureFiles::kept(Some(&bytes), Some(text.as_bytes())));
    }

    /// One bit of a bundle changed: it is of no known key, or no bundle; never another one that counts.
    #[test]
    fn no_changed_bundle_counts_for_another_artifact(at: prop::sample::Index, bit in 0_u8..7) {
        let pair = Pair::ed25519();
        let mut text = bytes(&pair.envelope(&statement(b"other")));
        let at = at.index(text.len());
        text[at] ^= 1 << bit;
        let verdict = verdict(pair.public(), vec![text]);
        prop_assert!(verdict.signed_by().is_none(), "{:?}", verdict);
    }
}
