//! The server scenarios of `@modelcontextprotocol/conformance`, with the tools of one plugin. What fails, and why, stands in
//! `conformance.yml`; whatever else fails, and what is listed and passes, fails the test.

use std::io::{Write as _, stderr};

use super::{Peers, Server, product};

const EXPECTED: [(&str, &str); 2] = [
    ("2025-11-25", include_str!("conformance-2025-11-25.yml")),
    ("2026-07-28", include_str!("conformance-2026-07-28.yml")),
];

fn check(revision: &str) {
    let Some(peers) = Peers::install() else {
        return;
    };
    let product = product();
    let server = Server::start(&product, &[]);
    let (_, expected) = EXPECTED.iter().find(|(name, _)| *name == revision).unwrap();
    let baseline = product.home.join("expected.yml");
    std::fs::write(&baseline, expected).unwrap();
    let mut suite = peers.node("@modelcontextprotocol/conformance/dist/index.js");
    suite
        .args(["server", "--url", &server.url, "--requirements", revision])
        .arg("--expected-failures")
        .arg(&baseline)
        .arg("-o")
        .arg(product.home.join("results"));
    let ran = suite.output().unwrap();
    let report = [ran.stdout, ran.stderr].concat();
    // Past the runner, which would keep it to itself: the report is what this test is for.
    let summary = summary(&String::from_utf8_lossy(&report));
    stderr()
        .write_all(format!("MCP {revision}:\n{summary}\n").as_bytes())
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
