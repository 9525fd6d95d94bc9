use std::fs;

use super::{FoundSignatures, SignatureFile};

#[test]
fn what_lies_beside_a_component_is_read_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let component = folder.path().join("weather.wasm");
    let beside = |file: SignatureFile| file.beside(&component);
    assert_eq!(
        beside(SignatureFile::Minisign),
        folder.path().join("weather.wasm.minisig")
    );
    assert!(FoundSignatures::beside(&component).unwrap().is_empty());
    fs::write(folder.path().join("weather.minisig"), "another").unwrap();
    assert!(FoundSignatures::beside(&component).unwrap().is_empty());
    fs::write(beside(SignatureFile::Minisign), "a signature").unwrap();
    fs::write(beside(SignatureFile::Manifest), "{}").unwrap();
    let found = FoundSignatures::beside(&component).unwrap();
    assert_eq!(found.minisign.as_deref(), Some(&b"a signature"[..]));
    assert_eq!(found.manifest.as_deref(), Some(&b"{}"[..]));
    assert_eq!(found.bundles, None);
}

/// A file that cannot be read is not the same as no file: it would make what is signed look unsigned, and what is refused allowed.
#[test]
fn what_cannot_be_read_is_not_missing() {
    let folder = tempfile::tempdir().unwrap();
    let component = folder.path().join("weather.wasm");
    let place = SignatureFile::Minisign.beside(&component);
    fs::create_dir(&place).unwrap();
    let problem = FoundSignatures::beside(&component).unwrap_err();
    assert!(problem.contains("not a regular file"), "{problem}");
    fs::remove_dir(&place).unwrap();
    fs::write(&place, vec![b'x'; 3 << 20]).unwrap();
    let problem = FoundSignatures::beside(&component).unwrap_err();
    assert!(problem.contains("has more than"), "{problem}");
    fs::remove_file(&place).unwrap();
    std::os::unix::fs::symlink("weather.wasm.minisig", &place).unwrap();
    let problem = FoundSignatures::beside(&component).unwrap_err();
    assert!(problem.contains("cannot be read"), "{problem}");
}
