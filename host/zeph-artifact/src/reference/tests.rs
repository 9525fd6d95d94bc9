//! References: one canonical text each, and nothing that a registry could read in another way.

use super::{ArtifactSource, Reference};

const DIGITS: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn reference(text: &str) -> Reference {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(text: &str) -> String {
    match text.parse::<Reference>() {
        Ok(reference) => panic!("`{text}` is `{reference}`"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_reference_has_one_canonical_text() {
    let digest = format!("sha256:{DIGITS}");
    for (text, canonical) in [
        ("ghcr.io/org/name:1.2", "ghcr.io/org/name:1.2".to_owned()),
        (
            "oci://ghcr.io/org/name:1.2",
            "ghcr.io/org/name:1.2".to_owned(),
        ),
        ("GHCR.io:443/org/name:V1", "ghcr.io/org/name:V1".to_owned()),
        ("localhost:5000/n:1", "localhost:5000/n:1".to_owned()),
        ("[::1]:5000/a/b/c:1", "[::1]:5000/a/b/c:1".to_owned()),
        ("0x7f.1:5000/a:1", "127.0.0.1:5000/a:1".to_owned()),
        (
            &format!("ghcr.io/org/a__b-c--d.e@{digest}"),
            format!("ghcr.io/org/a__b-c--d.e@{digest}"),
        ),
        (
            &format!("ghcr.io/org/name:1.2@{digest}"),
            format!("ghcr.io/org/name:1.2@{digest}"),
        ),
    ] {
        assert_eq!(reference(text).to_string(), canonical);
        assert_eq!(reference(&canonical), reference(text));
    }
}

#[test]
fn the_parts_of_a_reference() {
    let digest = format!("sha256:{DIGITS}");
    let whole = reference(&format!("localhost:5000/org/name:1.2@{digest}"));
    assert_eq!(whole.registry().to_string(), "localhost:5000");
    assert_eq!(whole.name(), "localhost:5000/org/name");
    assert_eq!(
        (whole.repository(), whole.short_name()),
        ("org/name", "name")
    );
    assert_eq!(whole.tag(), Some("1.2"));
    assert_eq!(whole.selector(), digest);
    assert_eq!(reference("localhost:5000/n:1.2").selector(), "1.2");
    let tagged = whole.tagged("sha256-ab").unwrap();
    assert_eq!(tagged.to_string(), "localhost:5000/org/name:sha256-ab");
    assert!(whole.tagged("../x").is_err());
}

#[test]
fn what_is_no_reference_is_refused() {
    let long = format!("ghcr.io/{}:1", "a".repeat(300));
    let short_digest = format!("ghcr.io/a@sha256:{}", &DIGITS[1..]);
    let upper_digest = format!("ghcr.io/a@sha256:{}", DIGITS.to_uppercase());
    let other_digest = format!("ghcr.io/a@sha512:{DIGITS}{DIGITS}");
    let path_digest = format!("ghcr.io/a@sha256:../../{}", &DIGITS[6..]);
    for text in [
        "",
        "/",
        "name",
        "name:1",
        "ghcr.io",
        "ghcr.io/",
        "ghcr.io/:1",
        "ghcr.io/name",
        "ghcr.io/Org/name:1",
        "ghcr.io/org//name:1",
        "ghcr.io/../name:1",
        "ghcr.io/org/..:1",
        "ghcr.io/org/.:1",
        "ghcr.io/org%2fname:1",
        "ghcr.io/org/name?x:1",
        "ghcr.io/org/name#x:1",
        "ghcr.io/org/na me:1",
        "ghcr.io/org/-name:1",
        "ghcr.io/org/name_:1",
        "ghcr.io/a___b:1",
        "ghcr.io/a.-b:1",
        "ghcr.io/org/name:",
        "ghcr.io/org/name:.1",
        "ghcr.io/org/name:a/b",
        "ghcr.io/org/name:1@",
        "ghcr.io/org/name@1",
        "user@ghcr.io/name:1",
        "user:pw@ghcr.io/a:1",
        "ghcr.io:0/a:1",
        "ghcr.io:99999/a:1",
        "ghcr..io/a:1",
        "gh cr.io/a:1",
        "::1/a:1",
        "ghcr.io/a:1\n",
        "ghcr.io/ä:1",
        "file:///a:1",
        &long,
        &short_digest,
        &upper_digest,
        &other_digest,
        &path_digest,
    ] {
        assert!(
            refusal(text).contains("is not a reference to a plugin"),
            "{text}"
        );
    }
    assert!(refusal("ghcr.io/org/name").contains("neither a tag"));
    assert!(refusal("ghcr.io/Org/name:1").contains("small letters"));
}

#[test]
fn a_file_and_a_reference_are_told_apart_by_their_form() {
    for text in [
        "ghcr.io/a:1",
        "localhost/a:1",
        "localhost:5000/a:1",
        "oci://x",
        "ghcr.io/a@x",
    ] {
        assert!(Reference::looks_like_one(text), "{text}");
    }
    for text in [
        "plugin.wasm",
        "./ghcr.io/a:1",
        "../ghcr.io/a:1",
        "/ghcr.io/a:1",
        "plugins/a:1",
        "build.d/plugin.wasm",
        "a:1",
        ".",
        "",
    ] {
        assert!(!Reference::looks_like_one(text), "{text}");
    }
}

#[test]
fn a_source_is_a_reference_or_a_url() {
    let source = |text: &str| text.parse::<ArtifactSource>();
    let url = source("https://example.org/p/Weather.wasm?x=1").unwrap();
    assert_eq!(url.short_name(), "Weather");
    assert_eq!(url.to_string(), "https://example.org/p/Weather.wasm?x=1");
    assert!(url.reference().is_none());
    let reference = source("ghcr.io/org/name:1").unwrap();
    assert_eq!(reference.short_name(), "name");
    let json = serde_json::to_string(&reference).unwrap();
    assert_eq!(json, "\"ghcr.io/org/name:1\"");
    assert_eq!(
        serde_json::from_str::<ArtifactSource>(&json).unwrap(),
        reference
    );
    for text in [
        "https://u:secret@example.org/a",
        "https://example.org/a#b",
        "https://",
        "ftp://a/b",
    ] {
        let error = source(text).unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
}
