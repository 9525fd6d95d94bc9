//! Credentials, from files as docker, podman and wkg write them.

use std::fs;
use std::path::PathBuf;

use super::{Credential, CredentialFiles, Lookup};
use crate::reference::RegistryHost;

fn basic(user: &str, password: &str) -> Lookup {
    Lookup::Known(Credential::Basic {
        user: user.to_owned(),
        password: password.to_owned(),
    })
}

fn host(text: &str) -> RegistryHost {
    text.parse().unwrap()
}

const DOCKER: &str = r#"{
  "auths": {
    "ghcr.io": { "auth": "b3BlbjpzZXNhbWU=" },
    "https://index.docker.io/v1/": { "auth": "aHViOnB3AAA=" },
    "https://quay.example/v2/": { "username": "u", "password": "p:w" },
    "half.example/org": { "auth": "b3BlbjpzZXNhbWU=" },
    "azure.example": { "auth": "MDAwOg==", "identitytoken": "refresh" },
    "localhost:5000": { "auth": "b3BlbjpzZXNhbWU" },
    "empty.example": {}
  },
  "credHelpers": { "cloud.example": "cloud" },
  "HttpHeaders": { "x": "y" }
}"#;

#[test]
fn the_file_of_docker() {
    let of = |registry: &str| super::docker::lookup(DOCKER, &host(registry), "name").unwrap();
    assert_eq!(of("ghcr.io"), basic("open", "sesame"));
    assert_eq!(of("GHCR.io:443"), basic("open", "sesame"));
    assert_eq!(of("localhost:5000"), basic("open", "sesame"));
    assert_eq!(of("quay.example"), basic("u", "p:w"));
    for hub in ["docker.io", "registry-1.docker.io"] {
        assert_eq!(of(hub), basic("hub", "pw"));
    }
    let token = Lookup::Known(Credential::Identity("refresh".to_owned()));
    assert_eq!(of("azure.example"), token);
    assert_eq!(of("cloud.example"), Lookup::Helper("cloud".to_owned()));
    // Neither another port, nor a host below or above, nor what is known for a part of a registry.
    for other in [
        "ghcr.io:8443",
        "x.ghcr.io",
        "io",
        "half.example",
        "empty.example",
    ] {
        assert_eq!(of(other), Lookup::None, "{other}");
    }
    let stored = DOCKER.replacen('{', r#"{ "credsStore": "desktop","#, 1);
    let of = |registry: &str| super::docker::lookup(&stored, &host(registry), "name").unwrap();
    assert_eq!(of("ghcr.io"), basic("open", "sesame"));
    assert_eq!(of("empty.example"), Lookup::Helper("desktop".to_owned()));
}

/// What docker and podman take for nothing is nothing, and what podman writes for a part of a registry counts for that.
#[test]
fn what_docker_and_podman_accept_is_no_error() {
    for text in [
        "",
        " \n",
        "{}",
        r#"{ "auths": null, "credHelpers": null, "credsStore": null }"#,
        r#"{ "auths": { "ghcr.io": {} }, "credsStore": "" }"#,
        r#"{ "auths": { "ghcr.io": null }, "credHelpers": { "ghcr.io": "" } }"#,
    ] {
        let found = super::docker::lookup(text, &host("ghcr.io"), "org/name");
        assert_eq!(found, Ok(Lookup::None), "{text}");
    }
    let parts = r#"{ "auths": {
        "ghcr.io": { "username": "whole", "password": "w" },
        "ghcr.io/org": { "username": "org", "password": "o" },
        "ghcr.io/org/name": { "username": "name", "password": "n" }
    } }"#;
    for (repository, user, password) in [
        ("org/name", "name", "n"),
        ("org/name/more", "name", "n"),
        ("org/names", "org", "o"),
        ("organisation/name", "whole", "w"),
    ] {
        let found = super::docker::lookup(parts, &host("ghcr.io"), repository);
        assert_eq!(found, Ok(basic(user, password)), "{repository}");
    }
    let broken = r#"{ "auths": { "ghcr.io": { "auth": "!!!" } } }"#;
    let error = super::docker::lookup(broken, &host("ghcr.io"), "name").unwrap_err();
    assert!(error.contains("`auth` of `ghcr.io`"), "{error}");
}

#[test]
fn the_file_of_wkg() {
    let text = r#"
        default_registry = "acme.example"
        [namespace_registries]
        wasi = "wasi.dev"
        [registry."ghcr.io"]
        type = "oci"
        [registry."ghcr.io".oci]
        auth = { username = "open", password = "sesame" }
        protocol = "https"
        [registry."localhost:5000".oci]
        auth = "cGluZzpwb25n"
        [registry."warg.example"]
        type = "warg"
    "#;
    let of = |registry: &str| super::wkg::lookup(text, &host(registry)).unwrap();
    assert_eq!(of("ghcr.io"), basic("open", "sesame"));
    assert_eq!(of("localhost:5000"), basic("ping", "pong"));
    assert_eq!(of("warg.example"), Lookup::None);
    assert_eq!(of("wasi.dev"), Lookup::None);
}

#[test]
fn files_that_are_not_there_say_nothing_and_broken_ones_are_named_without_their_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| -> Option<PathBuf> { Some(folder.path().join(name)) };
    let files = CredentialFiles {
        wkg: path("config.toml"),
        docker: path("config.json"),
        podman: path("auth.json"),
    };
    let registry = host("ghcr.io");
    assert_eq!(files.of(&registry, "name").unwrap(), Lookup::None);
    fs::write(folder.path().join("config.json"), DOCKER).unwrap();
    assert_eq!(
        files.of(&registry, "name").unwrap(),
        basic("open", "sesame")
    );
    let wkg = "[registry.\"ghcr.io\".oci]\nauth = { username = \"w\", password = \"kg\" }\n";
    fs::write(folder.path().join("config.toml"), wkg).unwrap();
    assert_eq!(files.of(&registry, "name").unwrap(), basic("w", "kg"));
    for broken in [
        "auth = \"sesame",
        "[registry.\"ghcr.io\".oci]\nauth = \"sesame\"",
    ] {
        fs::write(folder.path().join("config.toml"), broken).unwrap();
        let error = files.of(&registry, "name").unwrap_err().to_string();
        assert!(
            error.contains("config.toml") && !error.contains("sesame"),
            "{error}"
        );
    }
    let debug = format!("{:?}", basic("open", "sesame"));
    assert!(!debug.contains("sesame"), "{debug}");
}

#[test]
fn what_podman_knows_counts_where_docker_has_no_credentials() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| -> Option<PathBuf> { Some(folder.path().join(name)) };
    let files = CredentialFiles {
        wkg: None,
        docker: path("config.json"),
        podman: path("auth.json"),
    };
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let login = r#"{ "auths": { "ghcr.io": { "auth": "cGluZzpwb25n" } } }"#;
    write("auth.json", login);
    assert_eq!(
        files.of(&host("ghcr.io"), "name").unwrap(),
        basic("ping", "pong")
    );
    // A helper that is not run is named only where nobody else knows anything.
    write("config.json", r#"{ "credsStore": "desktop" }"#);
    assert_eq!(
        files.of(&host("ghcr.io"), "name").unwrap(),
        basic("ping", "pong")
    );
    let helper = Lookup::Helper("desktop".to_owned());
    assert_eq!(files.of(&host("quay.example"), "name").unwrap(), helper);
    write("config.json", DOCKER);
    assert_eq!(
        files.of(&host("ghcr.io"), "name").unwrap(),
        basic("open", "sesame")
    );
}
