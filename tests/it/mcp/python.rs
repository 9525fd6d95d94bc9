//! The Python library as a client, in each of its modes, over stdio and HTTP. What is asserted stands in `client.py`.

use super::{PEERS, Server, product};
use crate::peers::Peers;
use crate::product::Ran;

const SCRIPT: &str = include_str!("client.py");

/// Runs the script to its end against `server`: an address, or the words that start one.
fn check(mode: &str, version: &str, is_http: bool) {
    let Some(peers) = Peers::install(&PEERS) else {
        return;
    };
    let product = product();
    product.file("large.txt", "line of a large file\n".repeat(5_000));
    let host = product.command(&[]);
    let server = is_http.then(|| Server::start(&product, &[]));
    let mut script = peers.python(SCRIPT);
    script.args([mode, version]).current_dir(&product.work);
    match &server {
        Some(server) => script.arg(&server.url),
        None => script.arg(host.get_program()).arg("serve"),
    };
    for (name, value) in host
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)))
    {
        script.env(name, value);
    }
    let ran = Ran::from(script.output().unwrap());
    assert_eq!(ran.code, Some(0), "{mode}:\n{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.ends_with("all\n"), "{mode}:\n{}", ran.stdout);
    assert_eq!(product.read("approved.txt"), "yes");
    assert!(!product.work.join("declined.txt").exists());
}

#[test]
fn the_library_by_its_own_choice() {
    check("auto", "2026-07-28", false);
}

#[test]
fn the_library_with_a_handshake() {
    check("legacy", "2025-11-25", false);
}

#[test]
fn the_library_without_a_handshake() {
    check("2026-07-28", "2026-07-28", false);
}

#[test]
fn the_library_over_http_by_its_own_choice() {
    check("auto", "2026-07-28", true);
}

#[test]
fn the_library_over_http_with_a_handshake() {
    check("legacy", "2025-11-25", true);
}
