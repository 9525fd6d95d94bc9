//! Bundles: what is written comes back, the bytes depend on the content alone, and hostile archives are refused.

use std::fs::{self, File};
use std::io::{Seek as _, Write as _};

use proptest::prelude::*;
use zeph_core::id::Digest;

use super::{
    BLOCK, Bundle, BundleDraft, BundleError, BundledIndex, BundledPlugin, CONTENTS, LOCK,
    PartSource, header, part_name,
};

const LOCKED: &str = "version = 3\n";

/// Plugins with a component, a manifest and a signature each, and an index, put together in this order.
fn draft(names: &[&str]) -> BundleDraft {
    let mut draft = BundleDraft::default();
    for name in names {
        let component = draft.add(format!("component of {name}").into_bytes());
        let manifest = draft.add(format!("manifest of {name}").into_bytes());
        let part = draft.add(format!("signature of {name}").into_bytes());
        draft.plugin(BundledPlugin {
            name: (*name).to_owned(),
            component,
            minisign: Some(part),
            sigstore: None,
            manifest: Some(manifest),
        });
    }
    let document = draft.add(b"{}".to_vec());
    let signature = draft.add(b"untrusted comment".to_vec());
    draft.index(BundledIndex {
        source: "https://example.org/index.json".to_owned(),
        document,
        signature,
    });
    draft
}

fn bytes(draft: BundleDraft) -> Vec<u8> {
    let mut bytes = Vec::new();
    draft.write(LOCKED, &mut bytes).unwrap();
    bytes
}

fn open(bytes: &[u8]) -> Result<Bundle, BundleError> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    Bundle::open(file)
}

fn refusal(bytes: &[u8]) -> String {
    match open(bytes) {
        Ok(bundle) => panic!("it was read: {bundle:?}"),
        Err(error) => error.to_string(),
    }
}

/// An archive of these entries, each with the header it is given.
fn archive(entries: &[(tar::Header, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (header, content) in entries {
        archive.append(header, *content).unwrap();
    }
    archive.into_inner().unwrap()
}

fn plain(name: &str, content: &[u8]) -> tar::Header {
    header(name, content.len() as u64).unwrap()
}

#[test]
fn what_is_written_comes_back() {
    let bundle = open(&bytes(draft(&["notes", "weather"]))).unwrap();
    assert_eq!(bundle.lock(), LOCKED);
    let names: Vec<_> = bundle.plugins().iter().map(|one| &one.name).collect();
    assert_eq!(names, ["notes", "weather"]);
    let notes = &bundle.plugins()[0];
    assert_eq!(bundle.part(notes.component).unwrap(), b"component of notes");
    let signature = notes.minisign.unwrap();
    assert_eq!(bundle.part(signature).unwrap(), b"signature of notes");
    assert_eq!(bundle.part(bundle.indexes()[0].document).unwrap(), b"{}");
    let other = Digest::new([9; 32]);
    assert!(matches!(bundle.part(other), Err(BundleError::Missing(_))));
}

#[test]
fn the_bytes_depend_on_the_content_alone() {
    let one = bytes(draft(&["a", "b", "c"]));
    let other = bytes(draft(&["c", "a", "b"]));
    assert_eq!(one, other);
    // Any tar reads it.
    let mut archive = tar::Archive::new(one.as_slice());
    let names: Vec<_> = archive
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().display().to_string())
        .collect();
    assert_eq!(names[..2], [CONTENTS, LOCK]);
    assert!(names[2..].is_sorted(), "{names:?}");
}

#[test]
fn a_file_that_changed_since_it_was_looked_at_is_not_packed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.wasm");
    let component = BundleDraft::default().add(b"component".to_vec());
    for changed in [
        &b"component"[..],
        b"c0mponent",
        b"comp",
        b"component and more",
    ] {
        fs::write(&path, changed).unwrap();
        let mut draft = BundleDraft::default();
        let file = File::open(&path).unwrap();
        let n_bytes = 9;
        draft.put(component, PartSource::File { file, n_bytes });
        draft.plugin(BundledPlugin {
            name: "x".to_owned(),
            component,
            minisign: None,
            sigstore: None,
            manifest: None,
        });
        let written = draft.write(LOCKED, &mut Vec::new());
        // What grew behind its end is not read.
        match changed.starts_with(b"component") {
            true => written.unwrap(),
            false => assert!(
                matches!(written, Err(BundleError::Changed(_))),
                "{written:?}"
            ),
        }
    }
}

#[test]
fn a_part_that_was_not_added_is_an_error() {
    let mut draft = draft(&["a"]);
    draft.plugin(BundledPlugin {
        name: "b".to_owned(),
        component: Digest::new([7; 32]),
        minisign: None,
        sigstore: None,
        manifest: None,
    });
    let written = draft.write(LOCKED, &mut Vec::new());
    assert!(matches!(written, Err(BundleError::Missing(_))));
}

#[test]
fn every_truncation_is_refused() {
    let whole = bytes(draft(&["notes"]));
    for n_bytes in (0..whole.len()).step_by(64).chain([whole.len() - 1]) {
        refusal(&whole[..n_bytes]);
    }
    let mut longer = whole.clone();
    longer.extend([0; 512]);
    assert!(refusal(&longer).contains("behind its end"));
    // A second archive behind the first, which some programs would read on into.
    let twice = [whole.as_slice(), &whole].concat();
    refusal(&twice);
}

#[test]
fn a_changed_part_is_not_given_out() {
    let mut whole = bytes(draft(&["notes"]));
    let word = b"component of notes";
    let at = whole.windows(word.len()).position(|some| some == word);
    whole[at.unwrap()] = b'C';
    let bundle = open(&whole).unwrap();
    let component = bundle.plugins()[0].component;
    assert!(matches!(
        bundle.part(component),
        Err(BundleError::Changed(_))
    ));
}

#[test]
fn hostile_entries_are_refused() {
    let contents = br#"{"format":1,"plugins":[]}"#;
    let both = |more: tar::Header, content: &'static [u8]| {
        archive(&[
            (plain(CONTENTS, contents), contents),
            (plain(LOCK, b""), b""),
            (more, content),
        ])
    };
    let renamed = |name: &[u8]| {
        let mut header = plain(LOCK, b"x");
        header.as_old_mut().name = [0; 100];
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_cksum();
        header
    };
    for name in [
        &b"../zeph.lock"[..],
        b"/etc/passwd",
        b"sha256/../x",
        b"sha256/00",
        b"",
        b"zeph.lock/",
        b"sha256/\xff",
    ] {
        let told = refusal(&both(renamed(name), b"x"));
        assert!(told.contains("no entry of a bundle is named"), "{told}");
    }
    let hex = part_name(Digest::new([0xaa; 32]));
    for kind in [
        tar::EntryType::Symlink,
        tar::EntryType::Link,
        tar::EntryType::Directory,
        tar::EntryType::Fifo,
        tar::EntryType::Char,
        tar::EntryType::GNUSparse,
        tar::EntryType::GNULongName,
        tar::EntryType::XHeader,
        tar::EntryType::XGlobalHeader,
        tar::EntryType::Continuous,
    ] {
        let mut header = plain(&hex, b"x");
        header.set_entry_type(kind);
        header.set_link_name("/etc/passwd").unwrap();
        header.set_cksum();
        refusal(&both(header, b"x"));
    }
    // A mode of its own, an owner, a time: another program wrote it.
    let mut header = plain(&hex, b"x");
    header.set_mode(0o4755);
    header.set_cksum();
    let told = refusal(&both(header, b"x"));
    assert!(told.contains("another program"), "{told}");
    // Parts that nothing names.
    let told = refusal(&both(plain(&hex, b"x"), b"x"));
    assert!(told.contains("leave a part out"), "{told}");
}

#[test]
fn lengths_that_lie_are_refused() {
    let contents = br#"{"format":1,"plugins":[]}"#;
    for n_bytes in [1, BLOCK, 1 << 20, 1 << 33, u64::MAX / 2, u64::MAX] {
        let mut lying = plain(LOCK, b"");
        lying.set_size(n_bytes);
        lying.set_cksum();
        let whole = [plain(CONTENTS, contents).as_bytes().as_slice(), contents].concat();
        let mut whole = whole;
        whole.resize(1024, 0);
        whole.extend(lying.as_bytes());
        whole.extend([0; 1024]);
        refusal(&whole);
    }
}

#[test]
fn contents_that_do_not_fit_are_refused() {
    let digest = Digest::new([0xaa; 32]);
    let table = [
        (r#"{"format":2,"plugins":7}"#.to_owned(), "has format 2"),
        (r#"{"format":0,"plugins":[]}"#.to_owned(), "no format 0"),
        (
            r#"{"format":1,"plugins":[],"more":1}"#.to_owned(),
            "unknown field",
        ),
        ("{}".to_owned(), "missing field"),
        (
            format!(r#"{{"format":1,"plugins":[{{"name":"x","component":"{digest}"}}]}}"#),
            "does not hold",
        ),
    ];
    for (contents, expect) in table {
        let contents = contents.as_bytes();
        let told = refusal(&archive(&[
            (plain(CONTENTS, contents), contents),
            (plain(LOCK, b""), b""),
        ]));
        assert!(told.contains(expect), "{told}");
    }
    // Another order of the first two.
    let told = refusal(&archive(&[
        (plain(LOCK, b""), b""),
        (plain(CONTENTS, b"{}"), b"{}"),
    ]));
    assert!(told.contains("another place"), "{told}");
    let part = part_name(digest);
    let doubled = archive(&[
        (
            plain(CONTENTS, b"{\"format\":1,\"plugins\":[]}"),
            b"{\"format\":1,\"plugins\":[]}",
        ),
        (plain(LOCK, b""), b""),
        (plain(&part, b"x"), b"x"),
        (plain(&part, b"y"), b"y"),
    ]);
    assert!(refusal(&doubled).contains("twice"));
}

#[test]
fn what_is_no_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let error = Bundle::open(File::open(dir.path()).unwrap()).unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");
}

proptest! {
    /// Any bytes, and any change of a good bundle, end in an error or in parts that have their digests.
    #[test]
    fn no_bytes_are_read_as_something_else(
        garbage in proptest::collection::vec(any::<u8>(), 0..2048),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
    ) {
        drop(open(&garbage));
        let mut whole = bytes(draft(&["notes", "weather"]));
        for (at, byte) in changes {
            let at = at.index(whole.len());
            whole[at] = byte;
        }
        if let Ok(bundle) = open(&whole) {
            for plugin in bundle.plugins() {
                let part = bundle.part(plugin.component);
                prop_assert!(matches!(part, Ok(_) | Err(BundleError::Changed(_))));
            }
        }
    }
}
