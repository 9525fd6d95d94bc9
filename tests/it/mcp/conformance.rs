//! The scenarios of `@modelcontextprotocol/conformance`: for servers with the tools of one plugin, for clients with a program around the
//! host's client. What fails, and why, stands in `conformance-*.yml`; whatever else fails, and what is listed and passes, fails the test.

use std::io::{Write as _, stderr};
use std::process::Output;

use super::{PEERS, Product, Server, product};
use crate::peers::Peers;

const EXPECTED: [(&str, &str); 2] = [
    ("2025-11-25", include_str!("conformance-2025-11-25.yml")),
    ("2026-07-28", include_str!("conformance-2026-07-28.yml")),
];

/// The program that the suite runs for every scenario for clients.
const CLIENT: &str = env!("CARGO_BIN_EXE_mcp-client-under-test");

/// The program of the suite.
const SUITE: &str = "@modelcontextprotocol/conformance/dist/index.js";

fn check(revision: &str) {
    let Some(peers) = Peers::install(&PEERS) else {
        return;
    };
    let product = product();
    let server = Server::start(&product, &[]);
    run(&peers, &product, revision, ["server", "--url", &server.url]);
}

/// As for servers, but that a scenario which failed beside all others may pass alone: the suite starts them at once, and one (`sse-retry`)
/// counts the requests of two connections, which come in another order on a busy machine.
fn check_client(revision: &str) {
    let Some(peers) = Peers::install(&PEERS) else {
        return;
    };
    let product = product();
    let side = ["client", "--command", CLIENT];
    let ran = suite(&peers, &product, revision, side);
    let report = told(&ran, revision, side[0]);
    let unexpected = match report.split_once(UNEXPECTED) {
        Some((_, rest)) if !report.contains(STALE) => failed(rest),
        _ => Vec::new(),
    };
    assert!(
        ran.status.success() || !unexpected.is_empty(),
        "{revision}:\n{report}"
    );
    for scenario in unexpected {
        let is_passed = (0..ALONE_TRIES).any(|_| alone(&peers, scenario));
        assert!(is_passed, "{revision}, {scenario}:\n{report}");
    }
}

/// The headings of the suite's report above what failed, and above what was expected to fail and passed.
const UNEXPECTED: &str = "Unexpected failures (not in baseline):";
const STALE: &str = "Stale baseline entries";

/// How often a scenario may be tried alone: the machine may be busy with other tests.
const ALONE_TRIES: u32 = 3;

/// The scenarios of a list of failures at the beginning of `text`.
fn failed(text: &str) -> Vec<&str> {
    let lines = text
        .lines()
        .map(str::trim)
        .skip_while(|line| line.is_empty());
    lines.map_while(|line| line.strip_prefix("✗ ")).collect()
}

/// Runs one scenario for clients and says whether all its checks passed.
fn alone(peers: &Peers, scenario: &str) -> bool {
    let mut suite = peers.node(SUITE);
    suite.args(["client", "--command", CLIENT, "--scenario", scenario]);
    suite.output().unwrap().status.success()
}

fn run(peers: &Peers, product: &Product, revision: &str, side: [&str; 3]) {
    let ran = suite(peers, product, revision, side);
    let report = told(&ran, revision, side[0]);
    assert!(ran.status.success(), "{revision}:\n{report}");
}

/// Runs all scenarios of a revision.
fn suite(peers: &Peers, product: &Product, revision: &str, side: [&str; 3]) -> Output {
    let (_, expected) = EXPECTED.iter().find(|(name, _)| *name == revision).unwrap();
    let baseline = product.home.join("expected.yml");
    std::fs::write(&baseline, expected).unwrap();
    let mut suite = peers.node(SUITE);
    suite
        .args(side)
        .args(["--requirements", revision])
        .arg("--expected-failures")
        .arg(&baseline)
        .arg("-o")
        .arg(product.home.join("results"));
    suite.output().unwrap()
}

/// The whole report; its summary is written out.
fn told(ran: &Output, revision: &str, side: &str) -> String {
    let report = [&ran.stdout[..], &ran.stderr].concat();
    let report = String::from_utf8_lossy(&report).into_owned();
    // Past the runner, which would keep it to itself: the report is what this test is for.
    let summary = summary(&report);
    stderr()
        .write_all(format!("MCP {revision}, {side}:\n{summary}\n").as_bytes())
        .unwrap();
    report
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
