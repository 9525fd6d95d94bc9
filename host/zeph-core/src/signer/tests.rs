use proptest::prelude::*;

use super::{OfferPattern, Signer, SignerKey};

/// From the documentation of minisign.
const LINE: &str = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";

/// From RFC 8410, section 10.1.
const ED25519: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";

/// Made by `openssl ecparam -name prime256v1 -genkey | openssl ec -pubout`.
const P256: &str = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEJdV0ptClX+UlpvpKTkF2KHcXwvJ3\nJvJPzHrrLuJrQvpUU523sQc0m8FEvldh+9OUAHm748T5uKypbffGBVcODg==\n-----END PUBLIC KEY-----\n";

#[test]
fn keys_are_read_as_their_programs_write_them() {
    let key: SignerKey = LINE.parse().unwrap();
    assert_eq!(key.to_string(), "minisign E7620F1842B4E81F");
    assert_eq!(key.to_text(), LINE);
    let file = format!("untrusted comment: minisign public key E7620F1842B4E81F\n{LINE}\n");
    assert_eq!(file.parse::<SignerKey>().unwrap(), key);
    for (text, kind) in [(ED25519, "ed25519 sha256:"), (P256, "ecdsa-p256 sha256:")] {
        let key: SignerKey = text.parse().unwrap();
        assert!(key.to_string().starts_with(kind), "{key}");
        assert_eq!(key.to_text(), text);
        let one_line = text.replace('\n', "\r\n");
        assert_eq!(one_line.parse::<SignerKey>().unwrap(), key);
    }
}

#[test]
fn what_is_no_public_key_is_told_apart() {
    let private = ED25519.replace("PUBLIC", "PRIVATE");
    let twice = format!("{ED25519}{ED25519}");
    let long = "A".repeat(5000);
    let cut = &LINE[..52];
    let legacy = LINE.replace("RWQ", "RVQ");
    for (text, words) in [
        ("", "56 characters"),
        ("%%%", "neither a line of minisign"),
        (cut, "56 characters"),
        (legacy.as_str(), "56 characters"),
        (private.as_str(), "secret key"),
        (
            "untrusted comment: minisign encrypted secret key\nRW",
            "secret key",
        ),
        (twice.as_str(), "not valid base64"),
        (long.as_str(), "too long"),
        (
            "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
            "another kind",
        ),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
            "no public key alone",
        ),
        ("untrusted comment: no second line", "neither a line"),
    ] {
        let problem = text.parse::<SignerKey>().unwrap_err().to_string();
        assert!(problem.contains(words), "{text}: {problem}");
    }
}

#[test]
fn a_star_ends_at_a_slash() {
    let matches = |pattern: &str, reference: &str| {
        let pattern: OfferPattern = pattern.parse().unwrap();
        pattern.matches(reference)
    };
    assert!(matches("ghcr.io/acme/*", "ghcr.io/acme/weather"));
    assert!(!matches("ghcr.io/acme/*", "ghcr.io/acme/team/weather"));
    assert!(!matches("ghcr.io/acme/*", "ghcr.io/acmeother/weather"));
    assert!(!matches("ghcr.io/acme/*", "ghcr.io/ACME/weather"));
    assert!(matches("ghcr.io/acme/**", "ghcr.io/acme/team/weather"));
    assert!(!matches(
        "*.example.com/weather",
        "evil.test/a.example.com/weather"
    ));
    assert!(matches("{a,b}.test/x", "b.test/x"));
    assert!(matches("*", "ghcr.io/acme/weather") && matches("*", "file:weather"));
    assert!(!matches("file:*", "ghcr.io/acme/weather"));
    for (pattern, yes, no) in [
        (
            "file:**",
            "file:/tmp/x/index.json file:x file:",
            "ghcr.io/x",
        ),
        (
            "ghcr.io/acme**",
            "ghcr.io/acme ghcr.io/acme/a/b ghcr.io/acme-2/a",
            "ghcr.io/a",
        ),
        (
            "**.json",
            "a.json https://x.test/a/b.json .json",
            "a.jso json",
        ),
        ("a/**/b", "a/b a/x/b a/x/y/b", "a/xb"),
        ("a**b", "ab axb a/b ax/yb a/x/y/b", "a b"),
        ("{x,y**}.t", "x.t y.t y/z.t", "z.t"),
    ] {
        yes.split(' ')
            .for_each(|text| assert!(matches(pattern, text), "{pattern} {text}"));
        no.split(' ')
            .for_each(|text| assert!(!matches(pattern, text), "{pattern} {text}"));
    }
    for bad in ["", "[", "a b", "a\nb", &"x".repeat(2000)] {
        assert!(bad.parse::<OfferPattern>().is_err(), "{bad}");
    }
}

#[test]
fn names_of_signers() {
    assert_eq!(Signer::name_problem("release-2026@acme.test"), None);
    for bad in ["", "a b", "ä", "x\u{202e}y", &"x".repeat(65)] {
        assert!(Signer::name_problem(bad).is_some(), "{bad}");
    }
}

proptest! {
    #[test]
    fn no_text_brings_the_reader_down(text in "\\PC{0,200}") {
        if let Ok(key) = text.parse::<SignerKey>() {
            prop_assert_eq!(key.to_text().parse::<SignerKey>().unwrap(), key);
        }
        drop(text.parse::<OfferPattern>());
    }

    #[test]
    fn what_is_written_is_read_again(id: [u8; 8], key: [u8; 32]) {
        for key in [SignerKey::Minisign { id, key }, SignerKey::Ed25519(key)] {
            prop_assert_eq!(key.to_text().parse::<SignerKey>().unwrap(), key);
        }
    }

    /// A key is exactly its bytes: what changes in the text changes the key, or makes it none.
    #[test]
    fn no_other_text_is_the_same_key(at in 0_usize..56, byte in 0x21_u8..0x7f) {
        let mut changed = LINE.as_bytes().to_vec();
        prop_assume!(changed[at] != byte);
        changed[at] = byte;
        let changed = String::from_utf8(changed).unwrap();
        let key: SignerKey = LINE.parse().unwrap();
        prop_assert_ne!(changed.parse::<SignerKey>().ok(), Some(key));
    }
}
