//! Indexes: signatures, dates, numbers and keys, and what is found in them.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};
use zeph_core::id::Digest;
use zeph_core::signer::SignerKey;

use super::{ArtifactFacts, INDEX_BYTES_MAX, Index, IndexError, IndexMark, IndexTrust};
use crate::signature::secret::SecretKey;

/// 2026-11-23T00:00:00Z.
const NOW_MS: i64 = 1_795_392_000_000;

const HERE: &str = "https://example.org/stable.json";

const COMPONENT: &str = "sha256:0707070707070707070707070707070707070707070707070707070707070707";

fn document(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut document = json!({
        "format": 1,
        "number": 7,
        "expires": "2026-12-31T00:00:00Z",
        "plugins": [{
            "name": "notes",
            "description": "Keeps and finds notes",
            "source": "registry.example.org/team/notes",
            "keywords": ["markdown"],
            "versions": [
                { "version": "1.0.0", "component": COMPONENT, "yanked": "leaks notes" },
                { "version": "1.10.0" },
                { "version": "1.9.0" },
                { "version": "2.0.0-rc.1" },
                { "version": "1.11.0", "yanked": "" },
            ],
        }, {
            "name": "Weather",
            "description": "Says what the weather will be",
            "versions": [
                { "version": "0.1.0", "url": "https://example.org/weather.wasm", "component": COMPONENT },
            ],
        }],
    });
    change(&mut document);
    serde_json::to_vec(&document).unwrap()
}

/// Keys by their names, made once.
struct Keys(Vec<(&'static str, SecretKey)>);

static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let names = ["k", "other", "evil", "old", "new", "found"];
    Keys(
        names
            .map(|name| (name, SecretKey::generate().unwrap()))
            .into(),
    )
});

fn key(name: &str) -> &'static SecretKey {
    let mut keys = KEYS.0.iter();
    &keys.find(|(known, _)| *known == name).unwrap().1
}

fn trust(keys: &[&str], mark: Option<IndexMark>) -> IndexTrust {
    IndexTrust {
        address: HERE.to_owned(),
        keys: public(keys),
        mark,
        ..IndexTrust::default()
    }
}

fn public(keys: &[&str]) -> Vec<SignerKey> {
    keys.iter().map(|name| key(name).public()).collect()
}

fn open(
    document: &[u8],
    signer: &str,
    trust: &IndexTrust,
) -> Result<(Index, IndexMark), IndexError> {
    let signature = key(signer).sign(document, "", "").to_text();
    Index::open(document, signature.as_bytes(), trust, NOW_MS)
}

fn index() -> Index {
    open(&document(|_| {}), "k", &trust(&["k"], None))
        .unwrap()
        .0
}

#[test]
fn plugins_are_found_by_all_words() {
    let index = index();
    let names = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let found: Vec<_> = index.search(&words).map(|one| one.name.clone()).collect();
        found
    };
    assert_eq!(names(&["NOTES"]), ["notes"]);
    assert_eq!(names(&["markdown", "keeps"]), ["notes"]);
    assert_eq!(names(&["weather"]), ["Weather"]);
    assert_eq!(names(&["markdown", "weather"]), [""; 0]);
    assert_eq!(names(&[]).len(), 2);
}

#[test]
fn the_newest_version_is_by_its_numbers_and_not_withdrawn() {
    let index = index();
    let newest = |place: &str| {
        let mut plugins = index.plugins_at(place);
        plugins
            .next()?
            .newest()
            .map(|newest| newest.version.to_string())
    };
    let found = newest("registry.example.org/team/notes");
    assert_eq!(found.as_deref(), Some("1.10.0"));
    let found = newest("https://example.org/weather.wasm");
    assert_eq!(found.as_deref(), Some("0.1.0"));
    assert_eq!(newest("registry.example.org/team/note"), None);
}

#[test]
fn an_artifact_is_withdrawn_by_its_version_or_its_bytes() {
    let manifest = Digest::new([8; 32]);
    let (index, _) = open(
        &document(|index| {
            let versions = index["plugins"][0]["versions"].as_array_mut().unwrap();
            // The bytes of a withdrawn version stand there once more, without a word.
            versions.insert(0, json!({ "version": "0.9.0", "component": COMPONENT }));
            versions.push(json!({ "version": "1.12.0", "manifest": manifest, "yanked": "m" }));
        }),
        "k",
        &trust(&["k"], None),
    )
    .unwrap();
    let here = "registry.example.org/team/notes";
    let withdrawn: Digest = COMPONENT.parse().unwrap();
    let other = Digest::new([9; 32]);
    for (place, versions, manifest, component, expect) in [
        (here, "", None, withdrawn, Some("leaks notes")),
        (here, "1.0.0", None, withdrawn, Some("leaks notes")),
        // The same number with other bytes, the same bytes under another tag or elsewhere.
        (here, "1.0.0", None, other, Some("leaks notes")),
        (here, "3.0.0 1.0.0", None, other, Some("leaks notes")),
        (here, "3.0.0", None, withdrawn, Some("leaks notes")),
        ("file:x", "3.0.0", None, withdrawn, Some("leaks notes")),
        (here, "3.0.0", Some(manifest), other, Some("m")),
        (here, "1.11.0", None, other, Some("")),
        (here, "1.10.0", None, other, None),
        (here, "", None, other, None),
        ("elsewhere.example.org/a", "1.11.0", None, other, None),
    ] {
        let versions = versions.split_whitespace();
        let artifact = ArtifactFacts {
            place: Some(place.to_owned()),
            versions: versions.map(|text| text.parse().unwrap()).collect(),
            manifest,
            component: Some(component),
        };
        assert_eq!(index.withdrawn(&artifact), expect, "{artifact:?}");
    }
}

#[test]
fn an_index_needs_the_signature_of_a_trusted_key() {
    let document = document(|_| {});
    let error = |signature, keys: &[&str]| open(&document, signature, &trust(keys, None)).err();
    assert_eq!(error("k", &["other", "k"]), None);
    assert_eq!(error("k", &[]), Some(IndexError::NoKey));
    let told = error("evil", &["k"]).unwrap().to_string();
    assert!(told.contains("none of the known keys"), "{told}");
    // The signature of another document.
    let signature = key("k").sign(b"{}", "", "").to_text();
    let error = Index::open(
        &document,
        signature.as_bytes(),
        &trust(&["k"], None),
        NOW_MS,
    );
    assert!(matches!(error, Err(IndexError::Signature(_))), "{error:?}");
}

#[test]
fn nothing_unsigned_is_parsed() {
    let error = open(b"{", "evil", &trust(&["k"], None)).unwrap_err();
    assert!(matches!(error, IndexError::Signature(_)), "{error:?}");
    let error = open(b"{", "k", &trust(&["k"], None)).unwrap_err();
    assert!(matches!(error, IndexError::Bad(_)), "{error:?}");
}

/// A publisher may have several indexes: none of them is taken for another, nor does its number count there.
#[test]
fn an_index_that_says_where_it_belongs_is_used_only_there() {
    let of = |addresses: Value| document(|index| index["addresses"] = addresses);
    let trust = trust(&["k"], None);
    for addresses in [
        json!([]),
        json!([HERE]),
        json!(["https://mirror.example.org/", HERE]),
    ] {
        assert!(
            open(&of(addresses.clone()), "k", &trust).is_ok(),
            "{addresses}"
        );
    }
    let elsewhere = of(json!(["https://example.org/testing.json"]));
    let told = open(&elsewhere, "k", &trust).unwrap_err().to_string();
    assert!(
        told.contains("`https://example.org/testing.json`"),
        "{told}"
    );
    for addresses in [
        json!(["a\nb"]),
        json!(vec!["x"; 17]),
        json!(["x".repeat(501)]),
    ] {
        let error = open(&of(addresses), "k", &trust).unwrap_err();
        assert!(matches!(error, IndexError::Bad(_)), "{error:?}");
    }
}

#[test]
fn an_index_expires() {
    let expiring = |at: &str| document(|index| index["expires"] = json!(at));
    let open = |at| open(&expiring(at), "k", &trust(&["k"], None));
    assert!(open("2026-11-23T00:00:01Z").is_ok());
    let error = open("2026-11-23T00:00:00Z").unwrap_err();
    assert!(
        error
            .to_string()
            .contains("expired at 2026-11-23T00:00:00Z")
    );
    assert!(matches!(open("tomorrow"), Err(IndexError::Bad(_))));
}

#[test]
fn an_older_or_another_index_of_the_same_number_is_refused() {
    let numbered = |number: i64| document(|index| index["number"] = json!(number));
    let (_, mark) = open(&numbered(7), "k", &trust(&["k"], None)).unwrap();
    let seen = trust(&["k"], Some(mark.clone()));
    assert_eq!(open(&numbered(7), "k", &seen).unwrap().1, mark);
    assert_eq!(open(&numbered(8), "k", &seen).unwrap().1.number, 8);
    let error = open(&numbered(6), "k", &seen).unwrap_err();
    assert_eq!(error, IndexError::RolledBack { found: 6, seen: 7 });
    let forked = document(|index| index["plugins"] = json!([]));
    let error = open(&forked, "k", &seen).unwrap_err();
    assert_eq!(error, IndexError::Forked { number: 7 });
}

#[test]
fn keys_are_handed_on_and_revoked() {
    let numbered = |number: i64, keys: &[&str]| {
        let keys: Vec<String> = keys
            .iter()
            .map(|name| key(name).public().to_text())
            .collect();
        document(|index| {
            index["number"] = json!(number);
            index["keys"] = json!(keys);
        })
    };
    // The old key names itself and the new one, then the new one alone.
    let (_, mark) = open(&numbered(1, &["old", "new"]), "old", &trust(&["old"], None)).unwrap();
    let (_, mark) = open(&numbered(2, &["new"]), "old", &trust(&["old"], Some(mark))).unwrap();
    let seen = trust(&["old"], Some(mark.clone()));
    let error = open(&numbered(3, &["old"]), "old", &seen).unwrap_err();
    assert!(matches!(error, IndexError::Signature(_)), "{error:?}");
    // One that names no keys keeps those.
    let (_, mark) = open(&numbered(3, &[]), "new", &seen).unwrap();
    assert_eq!(mark.rotation.as_ref().unwrap().keys, public(&["new"]));
    let seen = trust(&["old"], Some(mark.clone()));
    assert!(open(&numbered(4, &[]), "old", &seen).is_err());
    // The operator has the last word: another key in the configuration counts, and the number stays.
    let seen = trust(&["found"], Some(mark));
    assert!(open(&numbered(4, &[]), "new", &seen).is_err());
    let (_, mark) = open(&numbered(4, &[]), "found", &seen).unwrap();
    assert_eq!(mark.rotation, None);
    assert!(open(&numbered(2, &[]), "found", &seen).is_err());
}

/// Time, another signer of the operator and one that is added leave revoked what an index revoked.
#[test]
fn a_key_that_an_index_left_out_stays_out_while_its_signer_is_there() {
    let numbered = |number: i64, keys: &[&str]| {
        let keys: Vec<String> = public(keys).iter().map(SignerKey::to_text).collect();
        document(|index| {
            index["number"] = json!(number);
            index["keys"] = json!(keys);
        })
    };
    let first = numbered(1, &["new"]);
    let (_, mark) = open(&first, "old", &trust(&["old", "other"], None)).unwrap();
    // It is looked at again, and again.
    let again = open(&first, "old", &trust(&["old", "other"], Some(mark.clone())));
    assert_eq!(again.unwrap().1, mark);
    // What counts; what has expired; what is revoked; who may sign the next one.
    for (keys, expired, revoked, expect) in [
        (&["old", "other"][..], "", "", "new"),
        (&["old"], "other", "", "new"),
        (&["old"], "", "other", "new"),
        (&["old"], "", "", "new"),
        (&["old", "other", "found"], "", "", "found new"),
        (&["old", "new"], "other", "", "new"),
        // The operator has the last word about each key.
        (&["old"], "new", "", ""),
        (&["old"], "", "new", ""),
        (&["other"], "old", "", ""),
        (&["other", "new"], "old", "", "new"),
        (&["other"], "", "old", "other"),
        (&["other"], "", "", "other"),
    ] {
        let named = |names: &str| public(&names.split_whitespace().collect::<Vec<_>>());
        let trust = IndexTrust {
            address: HERE.to_owned(),
            keys: public(keys),
            expired: named(expired),
            revoked: named(revoked),
            mark: Some(mark.clone()),
        };
        for signer in ["old", "other", "new", "found"] {
            let opened = open(&numbered(2, &[]), signer, &trust);
            let may = expect.split_whitespace().any(|name| name == signer);
            assert_eq!(
                opened.is_ok(),
                may,
                "{signer}: {keys:?} {expired} {revoked}"
            );
        }
    }
    // One that was removed and is added again is the operator's decision anew.
    let gone = trust(&["old"], Some(mark));
    let (_, mark) = open(&numbered(2, &[]), "new", &gone).unwrap();
    let back = trust(&["old", "other"], Some(mark));
    assert!(open(&numbered(3, &[]), "other", &back).is_ok());
    assert!(open(&numbered(3, &[]), "old", &back).is_err());
}

#[test]
fn what_is_not_entirely_right_is_refused() {
    type Change = fn(&mut Value);
    let table: &[(Change, &str)] = &[
        (|index| index["format"] = json!(0), "no format 0"),
        (|index| index["format"] = json!(2), "format 2"),
        (|index| index["more"] = json!(1), "unknown field"),
        (|index| index["number"] = json!(0), "at least 1"),
        (|index| index["number"] = json!(1.5), "invalid type"),
        (|index| index["keys"] = json!(["a b"]), "public keys"),
        (
            |index| {
                index["keys"] = json!(vec![
                    "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
                    17
                ]);
            },
            "public keys",
        ),
        (
            |index| index["plugins"][0]["name"] = json!(""),
            "a name has 1 to 64",
        ),
        (
            |index| index["plugins"][0]["description"] = json!("x".repeat(1001)),
            "a description has",
        ),
        (
            |index| index["plugins"][0]["versions"][1]["version"] = json!("1.0.0"),
            "stands there twice",
        ),
        (
            |index| index["plugins"][0]["versions"][1]["version"] = json!("1.0"),
            "",
        ),
        (
            |index| index["plugins"][1]["source"] = json!("registry.example.org/team/notes"),
            "that of another plugin",
        ),
        (
            |index| index["plugins"][1]["versions"][0]["url"] = Value::Null,
            "a version has a `url`",
        ),
    ];
    for (change, expect) in table {
        let error = open(&document(change), "k", &trust(&["k"], None)).unwrap_err();
        let told = error.to_string();
        assert!(told.contains(expect), "{expect}: {told}");
        assert!(told.chars().count() < 500, "{told}");
    }
    let large = [document(|_| {}), vec![b' '; INDEX_BYTES_MAX]].concat();
    assert!(open(&large, "k", &trust(&["k"], None)).is_err());
}

proptest! {
    /// Whatever is signed is read or refused, in bounded words.
    #[test]
    fn no_bytes_crash_the_reader(
        garbage in proptest::collection::vec(any::<u8>(), 0..512),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let trust = trust(&["k"], None);
        drop(open(&garbage, "k", &trust));
        let mut document = document(|_| {});
        for (at, byte) in changes {
            let at = at.index(document.len());
            document[at] = byte;
        }
        match open(&document, "k", &trust) {
            Ok((index, mark)) => prop_assert_eq!(index.number, mark.number),
            Err(error) => prop_assert!(error.to_string().chars().count() < 500),
        }
    }
}
