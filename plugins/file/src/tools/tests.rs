//! The table is complete and every schema stays inside what all model providers accept.

use serde_json::Value;

use super::tools;

const NAMES: [&str; 10] = [
    "read",
    "write",
    "edit",
    "grep",
    "find_path",
    "list_directory",
    "create_directory",
    "delete_path",
    "move_path",
    "copy_path",
];

const KEYWORDS: [&str; 9] = [
    "type",
    "description",
    "properties",
    "required",
    "items",
    "enum",
    "minimum",
    "maximum",
    "default",
];

#[test]
fn ten_tools_with_all_they_need() {
    let definitions = zeph_plugin::list(&tools());
    let names: Vec<&str> = definitions.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, NAMES);
    for tool in &definitions {
        assert!(
            tool.title.is_some() && tool.description.len() > 40 && tool.output.is_some(),
            "{}",
            tool.name
        );
        assert!(!tool.annotations.open_world, "{}", tool.name);
    }
}

#[test]
fn schemas_use_the_common_subset() {
    for tool in zeph_plugin::list(&tools()) {
        for schema in [Some(tool.parameters), tool.output].into_iter().flatten() {
            let schema: Value = serde_json::from_str(&schema).unwrap();
            assert_eq!(schema["type"], "object", "{}", tool.name);
            check_keywords(&tool.name, &schema);
        }
    }
}

#[test]
fn each_argument_is_described() {
    for tool in zeph_plugin::list(&tools()) {
        let schema: Value = serde_json::from_str(&tool.parameters).unwrap();
        for (name, argument) in schema["properties"].as_object().unwrap() {
            assert!(argument["description"].is_string(), "{}.{name}", tool.name);
        }
    }
}

fn check_keywords(tool: &str, schema: &Value) {
    for (keyword, value) in schema.as_object().unwrap() {
        assert!(KEYWORDS.contains(&keyword.as_str()), "{tool}: {keyword}");
        match keyword.as_str() {
            "properties" => value
                .as_object()
                .unwrap()
                .values()
                .for_each(|inner| check_keywords(tool, inner)),
            "items" => check_keywords(tool, value),
            _ => {}
        }
    }
}
