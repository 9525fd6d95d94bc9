//! The scenarios of `@modelcontextprotocol/conformance`: for servers with the tools of one plugin, for clients with a program around the
//! host's client. What fails, and why, stands in `conformance-*.yml`; whatever else fails, and what is listed and passes, fails the test.

use std::io::{Write as _, stderr};

use super::{Peers, Product, Server, product};

const EXPECTED: [(&str, &str); 2] = [
    ("2025-11-25", include_str!("conformance-2025-11-25.yml")),
    ("2026-07-28", include_str!("conformance-2026-07-28.yml")),
];

/// The program that the suite runs for every scenario for clients.
const CLIENT: &str = env!("CARGO_BIN_EXE_mcp-client-under-test");

fn check(revision: &str) {
    let Some(peers) = Peers::install() else {
        return;
    };
    let product = product();
    let server = Server::start(&product, &[]);
    run(&peers, &product, revision, ["server", "--url", &server.url]);
}

fn check_client(revision: &str) {
    let Some(peers) = Peers::install() else {
        return;
    };
    let product = product();
    run(&peers, &product, revision, ["client", "--command", CLIENT]);
}

fn run(peers: &Peers, product: &Product, revision: &str, side: [&str; 3]) {
    let (_, expected) = EXPECTED.iter().find(|(name, _)| *name == revision).unwrap();
    let baseline = product.home.join("expected.yml");
    std::fs::write(&baseline, expected).unwrap();
    let mut suite = peers.node("@modelcontextprotocol/conformance/dist/index.js");
    suite
        .args(side)
        .args(["--requirements", revision])
        .arg("--expected-failures")
        .arg(&baseline)
        .arg("-o")
        .arg(product.home.join("results"));
    let ran = suite.output().unwrap();
    let report = [ran.stdout, ran.stderr].concat();
    // Past the runner, which would keep it to itself: the report is what this test is for.
    let summary = summary(&String::from_utf8_lossy(&report));
    stderr()
        .write_all(format!("MCP {revision}, {}:\n{summary}\n", side[0]).as_bytes())
        .unwrap();
    let report = String::from_utf8_lossy(&report);
    assert!(ran.status.success(), "{revision}:\n{report}");
}

/// The part of a report that names every scenario once, without what each check said.
fn summary(report: &str) -> String {
    let at = report
        .rfind("=== SUMMARY")
        .or_else(|| report.find("Summary"));
    report[at.unwrap_or(0)..].to_owned()
}

#[test]
fn the_scenarios_of_2025_11_25_pass() {
    check("2025-11-25");
}

#[test]
fn the_scenarios_of_2026_07_28_pass() {
    check("2026-07-28");
}

#[test]
fn the_scenarios_of_2025_11_25_for_clients_pass() {
    check_client("2025-11-25");
}

#[test]
fn the_scenarios_of_2026_07_28_for_clients_pass() {
    check_client("2026-07-28");
}
