//! Names of packages, from the file of wkg and what registries say about themselves to references.

use std::fs;

use super::{Reply, Server, World, honest, publication};
use crate::package::{PackageError, PackageName};

const PLACE: &str = "/.well-known/wasm-pkg/registry.json";

/// What `package` stands for, with this file of wkg (`HERE` is the registry) and a registry that says `said`.
async fn resolved(package: &str, wkg: &str, said: Option<&'static str>) -> Result<String, String> {
    let artifact = publication("wasm");
    let server = Server::start(move |request| match (request.path.as_str(), said) {
        (PLACE, Some(said)) => Reply::whole(200, said.as_bytes()),
        _ => honest(&artifact, request),
    })
    .await;
    let here = format!("127.0.0.1:{}", server.port());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    fs::write(&path, wkg.replace("HERE", &here)).unwrap();
    let package: PackageName = package.parse().map_err(|error| format!("{error}"))?;
    let registries = World::of(&[&server]).registries();
    let resolved = package.resolve(&registries, Some(&path)).await;
    let resolved = resolved.map_err(|error: PackageError| error.to_string())?;
    Ok(resolved.to_string().replace(&here, "HERE"))
}

#[tokio::test]
async fn a_package_is_where_its_registry_says() {
    const NAMESPACE: &str = "[namespace_registries]\nacme = \"HERE\"";
    const SAYS: &str =
        r#"{"preferredProtocol":"oci","oci":{"registry":"ghcr.io","namespacePrefix":"org/"}}"#;
    let cases = [
        (
            "acme:notes@1.2.0",
            NAMESPACE,
            Some(SAYS),
            "ghcr.io/org/acme/notes:1.2.0",
        ),
        (
            "acme:notes@1.2.0+b",
            NAMESPACE,
            None,
            "HERE/acme/notes:1.2.0_b",
        ),
        (
            "acme:notes@1.2.0",
            "default_registry = \"HERE\"",
            None,
            "HERE/acme/notes:1.2.0",
        ),
        (
            "acme:notes@1.2.0",
            "[namespace_registries]\nacme = \"other.example\"\n[package_registry_overrides]\n\"acme:notes\" = \"HERE\"",
            Some(r#"{"ociRegistry":"ghcr.io","ociNamespacePrefix":"old/"}"#),
            "ghcr.io/old/acme/notes:1.2.0",
        ),
        (
            "acme:notes@1.2.0",
            "[namespace_registries.acme]\nregistry = \"HERE\"\nmetadata = {}",
            None,
            "HERE/acme/notes:1.2.0",
        ),
    ];
    for (package, wkg, said, expected) in cases {
        assert_eq!(resolved(package, wkg, said).await.as_deref(), Ok(expected));
    }
}

#[tokio::test]
async fn a_package_that_cannot_be_found_says_why() {
    const HERE: &str = "default_registry = \"HERE\"";
    let cases = [
        (
            "acme:notes@1.2.0",
            "",
            None,
            "which registry has the packages of `acme`",
        ),
        // The registry of this namespace is known, and not allowed.
        (
            "wasi:http@0.2.0",
            HERE,
            None,
            "`wasi.dev` is not one of the registries",
        ),
        (
            "acme:notes@1.2.0",
            "default_registry = 1",
            None,
            "config.toml",
        ),
        (
            "acme:notes@1.2.0",
            HERE,
            Some(r#"{"preferredProtocol":"warg"}"#),
            "it speaks `warg`",
        ),
        (
            "acme:notes@1.2.0",
            HERE,
            Some("<html>"),
            "is not understood",
        ),
        (
            "acme:notes@1.2.0",
            HERE,
            Some(r#"{"oci":{"registry":"ghcr.io","namespacePrefix":"../"}}"#),
            "is not a reference",
        ),
        ("acme:notes@latest", HERE, None, "is not a reference"),
        ("Acme:notes@1.2.0", HERE, None, "small letters"),
    ];
    for (package, wkg, said, expected) in cases {
        let error = resolved(package, wkg, said).await.unwrap_err();
        assert!(error.contains(expected), "{package}: {error}");
    }
}

#[test]
fn what_looks_like_a_package() {
    for text in ["acme:notes@1.2.0", "wasi:http@latest"] {
        assert!(PackageName::looks_like_one(text), "{text}");
    }
    for text in [
        "acme:notes",
        "notes.wasm",
        "localhost:5000/a@sha256:00",
        "C:x",
        "a/b:c@1",
        "1:2@3",
    ] {
        assert!(!PackageName::looks_like_one(text), "{text}");
    }
}
