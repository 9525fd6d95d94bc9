//! Signatures and keys exchanged with the program `minisign`, both ways.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use zeph_core::signer::SignerKey;

use crate::signature::secret::{Protection, SecretKey};
use crate::signature::verify_detached;

/// What the program says, or none where it is not installed. `input` is what it asks for.
#[expect(clippy::disallowed_methods, reason = "it ends with the test")]
fn minisign(folder: &Path, arguments: &[&str], input: &str) -> Option<(bool, String)> {
    let command = Command::new("minisign")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match command {
        Ok(child) => child,
        Err(error) => {
            eprintln!("skipped: the program minisign cannot be run: {error}");
            return None;
        }
    };
    // It may end without reading everything.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    let ended = child.wait_with_output().unwrap();
    let said = [ended.stdout, ended.stderr].concat();
    Some((
        ended.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    ))
}

#[test]
fn minisign_accepts_what_is_signed_here() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let key = SecretKey::generate().unwrap();
    let signature = key.sign(b"a document", "signature", "timestamp:1\tname:x");
    put("document", "a document");
    put("document.minisig", &signature.to_text());
    put("key.pub", &key.public_file());
    let verify = ["-Vm", "document", "-p", "key.pub"];
    let Some((is_good, said)) = minisign(folder.path(), &verify, "") else {
        return;
    };
    assert!(is_good && said.contains("timestamp:1\tname:x"), "{said}");
    put("document", "another document");
    let changed = minisign(folder.path(), &verify, "").unwrap();
    assert!(!changed.0, "{}", changed.1);

    // The secret keys, too.
    let locked = key.to_file(Protection::Password("open sesame")).unwrap();
    put("locked.key", &locked);
    put("plain.key", &key.to_file(Protection::None).unwrap());
    for (file, flag, input) in [
        ("locked.key", "-S", "open sesame\n"),
        ("plain.key", "-SW", ""),
    ] {
        let sign = [flag, "-m", "document", "-s", file, "-t", "by the program"];
        let (is_good, said) = minisign(folder.path(), &sign, input).unwrap();
        assert!(is_good, "{file}: {said}");
        let made = fs::read(folder.path().join("document.minisig")).unwrap();
        let verified = verify_detached(&made, b"another document", &[key.public()]).unwrap();
        assert_eq!(verified.trusted_comment, "by the program");
    }
}

#[test]
fn keys_and_signatures_of_minisign_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let generate = ["-GW", "-p", "key.pub", "-s", "key"];
    let Some((is_good, said)) = minisign(folder.path(), &generate, "") else {
        return;
    };
    assert!(is_good, "{said}");
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    let key = SecretKey::from_file(&read("key"), None).unwrap();
    let public: SignerKey = String::from_utf8(read("key.pub")).unwrap().parse().unwrap();
    assert_eq!(key.public(), public);
    assert_eq!(key.public_file().as_bytes(), read("key.pub"));

    fs::write(folder.path().join("document"), "text").unwrap();
    let sign = ["-SW", "-m", "document", "-s", "key"];
    assert!(minisign(folder.path(), &sign, "").unwrap().0);
    let signature = read("document.minisig");
    assert!(verify_detached(&signature, b"text", &[public]).is_ok());
    let legacy = ["-SlW", "-m", "document", "-s", "key"];
    assert!(minisign(folder.path(), &legacy, "").unwrap().0);
    let refused = verify_detached(&read("document.minisig"), b"text", &[key.public()]);
    assert!(refused.unwrap_err().to_string().contains("legacy"));
}

/// The program derives the key of a password with 1 GiB of memory.
#[test]
fn an_encrypted_key_of_minisign_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let generate = ["-G", "-p", "key.pub", "-s", "key"];
    let Some((is_good, said)) = minisign(folder.path(), &generate, "secret\nsecret\n") else {
        return;
    };
    assert!(is_good, "{said}");
    let file = fs::read(folder.path().join("key")).unwrap();
    let key = SecretKey::from_file(&file, Some("secret")).unwrap();
    let public = fs::read(folder.path().join("key.pub")).unwrap();
    assert_eq!(key.public_file().as_bytes(), public);
}
