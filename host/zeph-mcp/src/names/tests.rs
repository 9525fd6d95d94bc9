use std::collections::BTreeSet;

use proptest::prelude::*;
use zeph_core::id::{PluginId, ToolName};
use zeph_core::tool::{Backend, Tool};

use super::{EXPOSED_NAME_CHARS_MAX, ExposedNames};
use crate::tool::tests::a_tool;

fn of_plugin(plugin: &str, name: &str) -> Tool {
    Tool {
        backend: Backend::Wasm(PluginId(plugin.to_owned())),
        ..a_tool(name)
    }
}

fn name(name: &str) -> ToolName {
    ToolName::new(name).unwrap()
}

#[test]
fn a_name_that_fits_is_kept() {
    let tools = [
        of_plugin("file", "read"),
        a_tool("bash"),
        of_plugin("x", "x__read"),
    ];
    let names = ExposedNames::of(&tools, &[]);
    for kept in ["read", "bash", "x__read"] {
        assert_eq!(names.exposed(&name(kept)), Some(kept));
        assert_eq!(names.tool(kept), Some(&name(kept)));
    }
    assert_eq!(names.tool("write"), None);
}

#[test]
fn there_is_room_for_the_prefix_of_a_client() {
    assert_eq!(EXPOSED_NAME_CHARS_MAX, 48);
    let just_fits = "a".repeat(48);
    let too_long = "a".repeat(49);
    let tools = [a_tool(&just_fits), a_tool(&too_long)];
    let names = ExposedNames::of(&tools, &[]);
    assert_eq!(names.exposed(&name(&just_fits)), Some(just_fits.as_str()));
    let renamed = names.exposed(&name(&too_long)).unwrap();
    assert_eq!(renamed.len(), 48);
    assert!(renamed.starts_with(&"a".repeat(39)), "{renamed}");
    assert_eq!(names.tool(renamed), Some(&name(&too_long)));
}

#[test]
fn a_reserved_name_is_given_to_no_tool() {
    let tools = [of_plugin("evil", "call_tool")];
    let names = ExposedNames::of(&tools, &["find_tool", "call_tool"]);
    let exposed = names.exposed(&name("call_tool")).unwrap();
    assert!(exposed.starts_with("call_tool_"), "{exposed}");
    assert_eq!(names.tool("call_tool"), None);
}

#[test]
fn a_tool_that_is_named_like_a_renamed_one_keeps_its_name() {
    let long = of_plugin("honest", &"l".repeat(60));
    let alone = ExposedNames::of([&long], &[]);
    let taken = alone.exposed(&long.name).unwrap().to_owned();
    let squatter = of_plugin("squatter", &taken);
    let names = ExposedNames::of([&long, &squatter], &[]);
    assert_eq!(names.exposed(&squatter.name), Some(taken.as_str()));
    let other = names.exposed(&long.name).unwrap();
    assert_ne!(other, taken);
    assert_eq!(names.tool(other), Some(&long.name));
}

proptest! {
    #[test]
    fn every_set_of_tools_has_names_that_clients_take(
        tools in prop::collection::btree_map("[A-Za-z0-9_-]{1,64}|a{40,64}", "[a-z]{1,8}", 0..40),
        seed in any::<u64>(),
    ) {
        let tools: Vec<Tool> = tools.iter().map(|(tool, plugin)| of_plugin(plugin, tool)).collect();
        let names = ExposedNames::of(&tools, &["find_tool", "call_tool"]);
        let mut other_order: Vec<&Tool> = tools.iter().collect();
        if !other_order.is_empty() {
            let middle = usize::try_from(seed % other_order.len() as u64).unwrap();
            other_order.rotate_left(middle);
            other_order.reverse();
        }
        prop_assert_eq!(&names, &ExposedNames::of(other_order, &["find_tool", "call_tool"]));
        let mut exposed = BTreeSet::new();
        for tool in &tools {
            let name = names.exposed(&tool.name).unwrap();
            prop_assert!((1..=EXPOSED_NAME_CHARS_MAX).contains(&name.len()), "{}", name);
            prop_assert!(ToolName::new(name).is_ok(), "{}", name);
            prop_assert_eq!(names.tool(name), Some(&tool.name));
            prop_assert!(exposed.insert(name));
        }
    }
}
