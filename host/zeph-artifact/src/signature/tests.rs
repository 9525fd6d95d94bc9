use proptest::prelude::*;
use zeph_core::signer::SignerKey;

use super::comment::SignedFacts;
use super::minisign::{MinisignSignature, SIGNATURES_MAX};
use super::secret::{BadSecretKey, Protection, SecretKey};
use super::{DetachedError, verify_detached};

mod program;

/// From the documentation of minisign: a key, and its signature over `test`.
const KEY: &str = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
const SIGNATURE: &str = "untrusted comment: signature from minisign secret key
RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=
trusted comment: timestamp:1556193335\tfile:test
y/rUw2y8/hOUYjZU71eHp/Wo1KZ40fGy2VJEDl34XMJM+TX48Ss/17u3IvIfbVR1FkZZSNCisQbuQY+bHwhEBg==
";
const LEGACY: &str = "untrusted comment: signature from minisign secret key
RWQf6LRCGA9i59SLOFxz6NxvASXDJeRtuZykwQepbDEGt87ig1BNpWaVWuNrm73YiIiJbq71Wi+dP9eKL8OC351vwIasSSbXxwA=
trusted comment: timestamp:1555779966\tfile:test
QtKMXWyYcwdpZAlPF7tE2ENJkRd1ujvKjlj1m9RtHTBnZPa5WKU5uWRs5GoP5M/VqE81QFuMKI5k/SfNQUaOAA==
";

fn known() -> Vec<SignerKey> {
    vec![KEY.parse().unwrap()]
}

fn signed(key: &SecretKey, message: &[u8]) -> String {
    key.sign(message, "by a test", "timestamp:1").to_text()
}

#[test]
fn a_signature_of_minisign_holds_for_its_message_alone() {
    let verified = verify_detached(SIGNATURE.as_bytes(), b"test", &known()).unwrap();
    assert_eq!(verified.trusted_comment, "timestamp:1556193335\tfile:test");
    let other = verify_detached(SIGNATURE.as_bytes(), b"Test", &known());
    assert_eq!(other, Err(DetachedError::Mismatch));
    let crlf = SIGNATURE.replace('\n', "\r\n");
    assert!(verify_detached(crlf.as_bytes(), b"test", &known()).is_ok());
    // Nobody vouches for the first line.
    let renamed = SIGNATURE.replacen("signature from minisign secret key", "x", 1);
    assert!(verify_detached(renamed.as_bytes(), b"test", &known()).is_ok());
    let comment = SIGNATURE.replace("file:test", "file:else");
    let changed = verify_detached(comment.as_bytes(), b"test", &known());
    assert_eq!(changed, Err(DetachedError::Mismatch));
}

#[test]
fn legacy_and_foreign_and_broken_files_are_told_apart() {
    let problem = |text: &[u8]| {
        let verified = verify_detached(text, b"test", &known());
        verified.unwrap_err().to_string()
    };
    assert!(problem(LEGACY.as_bytes()).contains("legacy signature of minisign"));
    let lines: Vec<&str> = SIGNATURE.lines().collect();
    for cut in 0..4 {
        let text = lines[..cut].join("\n");
        assert!(problem(text.as_bytes()).contains("four lines"), "{cut}");
    }
    assert!(problem(b"\xff\xfe").contains("UTF-8"));
    assert!(problem(&vec![b'a'; 70_000]).contains("at most 65536 bytes"));
    let many = SIGNATURE.repeat(SIGNATURES_MAX + 1);
    assert!(problem(many.as_bytes()).contains("at most 8 signatures"));
    let cut = SIGNATURE.replace("8KLzZwo=", "8KLz");
    assert!(
        problem(cut.as_bytes()).contains("cut off"),
        "{}",
        problem(cut.as_bytes())
    );
    let swapped = [lines[2], lines[1], lines[0], lines[3]].join("\n");
    assert!(problem(swapped.as_bytes()).contains("`untrusted comment: ` is missing"));
}

#[test]
fn of_several_signatures_one_good_one_of_a_known_key_is_enough() {
    let (one, other) = (
        SecretKey::generate().unwrap(),
        SecretKey::generate().unwrap(),
    );
    let keys = [other.public(), one.public()];
    let (good, stale) = (signed(&one, b"this"), signed(&other, b"that"));
    for file in [format!("{good}{stale}"), format!("{stale}\n{good}\n")] {
        let verified = verify_detached(file.as_bytes(), b"this", &keys).unwrap();
        assert_eq!(verified.key_idx, 1);
    }
    let only_stale = verify_detached(stale.as_bytes(), b"this", &keys);
    assert_eq!(only_stale, Err(DetachedError::Mismatch));
    let nobody = verify_detached(good.as_bytes(), b"this", &keys[..1]).unwrap_err();
    assert!(
        matches!(nobody, DetachedError::UnknownKey { .. }),
        "{nobody}"
    );
    assert!(verify_detached(good.as_bytes(), b"this", &[]).is_err());
}

/// Numbers of keys are chosen by whoever makes the key.
#[test]
fn a_key_with_the_number_of_another_does_not_stand_in_for_it() {
    let (own, stranger) = (
        SecretKey::generate().unwrap(),
        SecretKey::generate().unwrap(),
    );
    let SignerKey::Minisign { id, key: own_key } = own.public() else {
        panic!()
    };
    let SignerKey::Minisign {
        id: other_id,
        key: stranger_key,
    } = stranger.public()
    else {
        panic!()
    };
    // Said to be made by the own key.
    let mut forged = stranger.sign(b"x", "", "");
    forged.key_id = id;
    let verified = verify_detached(forged.to_text().as_bytes(), b"x", &[own.public()]);
    assert_eq!(verified, Err(DetachedError::Mismatch));
    // Two known keys of one number: each of them counts.
    let twins = [
        SignerKey::Minisign {
            id: other_id,
            key: own_key,
        },
        SignerKey::Minisign {
            id: other_id,
            key: stranger_key,
        },
    ];
    let verified = verify_detached(signed(&stranger, b"x").as_bytes(), b"x", &twins);
    assert_eq!(verified.unwrap().key_idx, 1);
    // A PEM key has no number, and no signature of minisign means it.
    let pem = [SignerKey::Ed25519(stranger_key)];
    assert!(verify_detached(signed(&stranger, b"x").as_bytes(), b"x", &pem).is_err());
}

#[test]
fn secret_keys_are_read_as_they_were_written() {
    let key = SecretKey::generate().unwrap();
    let plain = key.to_file(Protection::None).unwrap();
    assert_eq!(SecretKey::is_encrypted(plain.as_bytes()), Ok(false));
    let read = SecretKey::from_file(plain.as_bytes(), None).unwrap();
    assert_eq!(read.public(), key.public());
    let locked = key.to_file(Protection::Password("päss")).unwrap();
    assert_eq!(SecretKey::is_encrypted(locked.as_bytes()), Ok(true));
    let open = |password| SecretKey::from_file(locked.as_bytes(), password);
    assert_eq!(open(Some("päss")).unwrap().public(), key.public());
    assert_eq!(open(Some("pass")).unwrap_err(), BadSecretKey::WrongPassword);
    assert_eq!(open(None).unwrap_err(), BadSecretKey::NeedsPassword);
    assert!(key.public_file().parse::<SignerKey>().is_ok());
    assert!(!format!("{key:?}").contains(&plain.lines().last().unwrap()[90..]));
}

/// Public and secret half that are not of one key would give the secret away in a signature.
#[test]
fn a_changed_secret_key_is_refused() {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    let key = SecretKey::generate()
        .unwrap()
        .to_file(Protection::None)
        .unwrap();
    let line = key.lines().nth(1).unwrap();
    let bytes = STANDARD.decode(line).unwrap();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        let text = key.replace(line, &STANDARD.encode(&changed));
        let read = SecretKey::from_file(text.as_bytes(), Some("x"));
        // Salt and limits mean nothing where nothing is encrypted.
        assert_eq!(read.is_ok(), (6..54).contains(&at), "{at}");
    }
    let costly = |limits: (u64, u64)| {
        let mut costly = bytes.clone();
        costly[2..4].copy_from_slice(b"Sc");
        costly[38..46].copy_from_slice(&limits.0.to_le_bytes());
        costly[46..54].copy_from_slice(&limits.1.to_le_bytes());
        let text = key.replace(line, &STANDARD.encode(&costly));
        SecretKey::from_file(text.as_bytes(), Some("x")).unwrap_err()
    };
    for limits in [
        (u64::MAX, 1 << 20),
        (1 << 20, u64::MAX),
        (1 << 26, 1 << 30),
        (1 << 20, 1 << 31),
    ] {
        assert_eq!(costly(limits), BadSecretKey::Costly, "{limits:?}");
    }
}

#[test]
fn a_comment_cannot_end_its_line() {
    let key = SecretKey::generate().unwrap();
    let text = key
        .sign(b"x", "a\nb\r", "c\ntrusted comment: d\te")
        .to_text();
    assert_eq!(text.lines().count(), 4);
    let verified = verify_detached(text.as_bytes(), b"x", &[key.public()]).unwrap();
    assert_eq!(verified.trusted_comment, "ctrusted comment: d\te");
}

proptest! {
    #[test]
    fn facts_are_read_as_they_were_written(name in "[!-~]{1,40}", version in "[!-~]{1,20}", signed in 0_i64..1 << 40, expires in proptest::option::of(0_i64..1 << 40)) {
        let facts = SignedFacts {
            name: Some(name),
            version: Some(version),
            signed_at: Some(signed),
            expires_at: expires,
        };
        prop_assert_eq!(SignedFacts::read(&facts.write().unwrap()).unwrap(), facts);
    }

    #[test]
    fn no_comment_brings_the_reader_down(comment in "(name:|version:|expires:|timestamp:|\t|[0-9]{1,20}|\\PC){0,12}") {
        if let Ok(facts) = SignedFacts::read(&comment) {
            prop_assert!(facts.write().is_ok());
        }
    }

    #[test]
    fn no_file_brings_the_reader_down(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        drop(MinisignSignature::all(&bytes));
        drop(SecretKey::from_file(&bytes, None));
    }

    #[test]
    fn no_lines_bring_the_reader_down(text in "(untrusted comment: |trusted comment: |RUQf6LRCGA9i|[A-Za-z0-9+/=]{0,80}|\\PC|\n){0,12}") {
        if let Ok(read) = MinisignSignature::all(text.as_bytes()) {
            let again: String = read.iter().map(MinisignSignature::to_text).collect();
            prop_assert_eq!(MinisignSignature::all(again.as_bytes()).unwrap(), read);
        }
    }

    /// Whatever single byte of the three lines that count is changed: it is another signature or none.
    #[test]
    fn no_changed_signature_holds(at in 54_usize..300, byte: u8) {
        let mut changed = SIGNATURE.as_bytes().to_vec();
        let at = at.min(changed.len() - 2);
        prop_assume!(changed[at] != byte);
        changed[at] = byte;
        prop_assert!(verify_detached(&changed, b"test", &known()).is_err());
    }

    #[test]
    fn what_is_signed_verifies(message in prop::collection::vec(any::<u8>(), 0..200), comment in "\\PC{0,40}") {
        let key = SecretKey::generate().unwrap();
        let text = key.sign(&message, "", &comment).to_text();
        let verified = verify_detached(text.as_bytes(), &message, &[key.public()]).unwrap();
        prop_assert_eq!(verified.trusted_comment, comment);
    }
}
