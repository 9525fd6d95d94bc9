use std::collections::HashSet;

use super::*;
use crate::jail::tests::harness::Room;

#[test]
fn each_layer_is_named_once_and_what_is_missing_can_be_got() {
    let mut room = Room::new();
    for mode in [Mode::Enforced, Mode::Disabled] {
        room.policy.mode = mode;
        let layers = layers(&room.jail());
        let names: HashSet<_> = layers.iter().map(|layer| layer.name).collect();
        assert_eq!(names.len(), layers.len());
        for layer in layers {
            let told = layer.state != LayerState::Missing || layer.how_to_get.is_some();
            assert!(told, "{layer:?}");
            let json = serde_json::to_value(&layer).unwrap();
            assert!(json["state"].is_string(), "{json}");
        }
    }
}

#[test]
fn the_first_layer_says_what_results_say() {
    let mut room = Room::new();
    let version = |jail: &Jail| layers(jail)[0].version.clone();
    assert_eq!(version(&room.jail()).as_deref(), Some("full"));
    let alone = Jail::without_namespaces(room.policy.clone());
    assert_eq!(version(&alone).as_deref(), Some("landlock-only"));
    room.policy.mode = Mode::Disabled;
    assert_eq!(version(&room.jail()).as_deref(), Some("none"));
}
