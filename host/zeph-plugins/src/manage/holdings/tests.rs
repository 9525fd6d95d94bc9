use crate::manage::tests::{WANTS, World, manifest, pin};
use zeph_core::lifetime::GrantLifetime;

use super::Holdings;

/// A grant, and what becomes of it: for each wish `granted`, `part` or nothing; or why it is idle.
fn check(wants: &str, grants: &[&str], expect: &[&str], idle: &[&str]) {
    let world = World::new();
    let grants = (1..).zip(grants).map(|(id, text)| {
        let (when, text) = text.split_once(' ').unwrap();
        let mut grant = world.grant(id, text);
        match when {
            "now" => {}
            "old" => grant.pin = pin("other"),
            "past" => grant.lifetime = GrantLifetime::Until { at_ms: 1000 },
            _ => grant.lifetime = GrantLifetime::Until { at_ms: 1001 },
        }
        grant
    });
    let manifest = manifest(wants);
    let holdings = Holdings::new(&manifest, pin("one"), grants.collect(), &world.config, 1000);
    let found: Vec<String> = holdings
        .wants
        .iter()
        .map(|held| {
            let how = match (held.is_granted(), held.grants.is_empty()) {
                (true, _) => "granted",
                (false, false) => "part",
                (false, true) => "",
            };
            let effective: Vec<_> = held.effective.iter().map(ToString::to_string).collect();
            let effective = effective
                .join(", ")
                .replace(&*world.home.to_string_lossy(), "HOME");
            format!("{how}; {effective}").trim().to_owned()
        })
        .collect();
    assert_eq!(found, expect, "{:?}", holdings.wants);
    let reasons: Vec<_> = holdings.idle.iter().map(|(_, reason)| *reason).collect();
    assert_eq!(reasons, idle);
}

#[test]
fn what_a_plugin_has_of_what_it_wants() {
    let nothing = [";"; 5];
    check(WANTS, &[], &nothing, &[]);
    check(
        WANTS,
        &[
            "now directory HOME/notes:read",
            "now host api.example.com",
            "soon variable LANG",
            "now limit memory_bytes=1000",
        ],
        &[
            "part;",
            "granted; host api.example.com",
            ";",
            "granted; variable LANG",
            "part; limit memory_bytes=1000",
        ],
        &[],
    );
    check(
        WANTS,
        &[
            "old variable LANG",
            "past variable LANG",
            "now variable PATH",
            "now directory HOME/work:read",
        ],
        &nothing,
        &[
            "it was given to another version",
            "it has expired",
            "it is not wanted any more",
            "it is not wanted any more",
        ],
    );
}

#[test]
fn the_policy_has_the_last_word_on_directories() {
    let wants = "[[directory]]\npath = \".\"\nrights = [\"read\"]\nreason = \"r\"\n";
    let work = "now directory HOME/work:read";
    check(wants, &[work], &["granted; directory HOME/work:read"], &[]);
    check(
        wants,
        &["now directory HOME:read"],
        &["granted; directory HOME/work:read"],
        &[],
    );
    check(
        wants,
        &["now directory HOME/work/src:read"],
        &["part; directory HOME/work/src:read"],
        &[],
    );
    check(wants, &["now directory HOME/notes:read"], &["part;"], &[]);
    check(
        wants,
        &["now directory HOME/work:write"],
        &[";"],
        &["it is not wanted any more"],
    );
}

#[test]
fn the_most_of_a_limit_is_all_of_it() {
    let wants = "[[limit]]\nname = \"handles\"\nvalue = 18000000\nreason = \"r\"\n";
    let most = zeph_engine::ceiling(zeph_core::capability::LimitName::Handles);
    let granted = format!("limit handles={most}");
    check(
        wants,
        &[&format!("now {granted}")],
        &[&format!("granted; {granted}")],
        &[],
    );
    check(
        wants,
        &["now limit handles=1000"],
        &["part; limit handles=1000"],
        &[],
    );
}
