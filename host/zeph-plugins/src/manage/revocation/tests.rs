use zeph_store::UnreadableGrant;

use crate::manage::ManageError;
use crate::manage::selection::RequestedItem;
use crate::manage::tests::{World, plugin};

use super::{RevocationTarget, plan};

/// What was granted, in the tests below: numbers from 1.
const GRANTED: [&str; 5] = [
    "directory HOME/notes:read+write",
    "directory HOME/notes/deep:delete",
    "host api.example.com",
    "limit memory_bytes=1000",
    "variable LANG",
];

fn check(asked: &[RequestedItem], ids: &[i64], revoked: &[i64], kept: &[&str]) {
    let world = World::new();
    let grants: Vec<_> = (1..)
        .zip(GRANTED)
        .map(|(id, text)| world.grant(id, text))
        .collect();
    let unreadable = [UnreadableGrant {
        id: 9,
        plugin: "x".to_owned(),
        problem: "p".to_owned(),
    }];
    let named = match (asked, ids) {
        ([], [0]) => RevocationTarget::All,
        _ => RevocationTarget::These { asked, ids },
    };
    let planned = plan(&plugin(), &grants, &unreadable, &named, world.base());
    let plan = match planned {
        Ok(plan) => plan,
        Err(ManageError::NothingToRevoke { grants, .. }) => {
            assert!(revoked.is_empty(), "{asked:?}");
            assert_eq!(grants.len(), GRANTED.len() + 1);
            return;
        }
        Err(error) => panic!("{asked:?}: {error}"),
    };
    let ids = plan.revoked.iter().map(|grant| grant.id);
    let ids: Vec<i64> = ids.chain(plan.unreadable.iter().copied()).collect();
    assert_eq!(ids, revoked, "{asked:?}");
    let left: Vec<_> = plan
        .kept
        .iter()
        .map(|grant| grant.capability.clone())
        .collect();
    let kept: Vec<_> = kept.iter().map(|text| world.capability(text)).collect();
    assert_eq!(left, kept, "{asked:?}");
}

#[test]
fn a_directory_means_all_that_is_granted_below_it() {
    let directory = RequestedItem::directory;
    check(&[directory("~/notes")], &[], &[1, 2], &[]);
    check(&[directory("~")], &[], &[1, 2], &[]);
    check(&[directory("~/notes/deep")], &[], &[2], &[]);
    check(
        &[directory("../notes:write")],
        &[],
        &[1],
        &["directory HOME/notes:read"],
    );
    check(&[directory("~/notes:read+write")], &[], &[1], &[]);
    check(
        &[directory("~/notes:read"), directory("~/notes:write+delete")],
        &[],
        &[1, 2],
        &[],
    );
    check(&[directory("~/notes:create")], &[], &[], &[]);
    check(&[directory("/")], &[], &[1, 2], &[]);
    check(&[directory("~/gone")], &[], &[], &[]);
}

#[test]
fn other_grants_are_meant_by_name_or_number() {
    check(
        &[RequestedItem::host("api.example.com").unwrap()],
        &[],
        &[3],
        &[],
    );
    check(
        &[RequestedItem::host("example.com").unwrap()],
        &[],
        &[],
        &[],
    );
    check(&[RequestedItem::Program("LANG".to_owned())], &[], &[], &[]);
    check(
        &[RequestedItem::limit("memory_bytes").unwrap()],
        &[],
        &[4],
        &[],
    );
    check(
        &[RequestedItem::limit("memory_bytes=1000").unwrap()],
        &[],
        &[4],
        &[],
    );
    check(
        &[RequestedItem::limit("memory_bytes=999").unwrap()],
        &[],
        &[],
        &[],
    );
    check(&[RequestedItem::limit("handles").unwrap()], &[], &[], &[]);
    check(
        &[RequestedItem::Variable("LANG".to_owned())],
        &[2, 9, 77],
        &[2, 5, 9],
        &[],
    );
    check(&[], &[1], &[1], &[]);
    check(&[], &[0], &[1, 2, 3, 4, 5, 9], &[]);
}
