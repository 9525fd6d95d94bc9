//! Uses of grants: the latest is kept, and every host on the same database sees it.

use zeph_core::id::PluginId;
use zeph_store::GrantUse;

use crate::database::{Database, on_every_database};
use crate::setup::NOW_MS;

fn plugin(name: &str) -> PluginId {
    PluginId(name.to_owned())
}

async fn the_latest_use_is_kept<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    assert!(store.grant_uses().await.unwrap().uses.is_empty());
    let host = || vec!["host a.example".to_owned()];
    store.note_grant_uses(plugin("p"), host(), NOW_MS);
    store.note_grant_uses(plugin("p"), host(), NOW_MS - 5);
    store.note_grant_uses(plugin("o"), host(), NOW_MS + 1);
    store.close().await.unwrap();
    let kept = |name, used_at_ms| GrantUse {
        plugin: plugin(name),
        capability: "host a.example".to_owned(),
        used_at_ms,
    };
    let known = database.open().grant_uses().await.unwrap();
    assert_eq!(known.uses, [kept("o", NOW_MS + 1), kept("p", NOW_MS)]);
    assert!(known.since_ms > 0);
}

on_every_database! {
    any: [],
    lasting: [the_latest_use_is_kept],
}
