use zeph_core::tool::{Backend, Tool};

use super::tools;

fn named(name: &str) -> Tool {
    let found = tools().into_iter().find(|tool| tool.name.as_str() == name);
    found.expect("there is one of this name")
}

#[test]
fn a_model_sees_these_parameters() {
    let check = |name: &str, expect: &str| {
        let tool = named(name);
        assert_eq!(tool.parameters.compact(), expect);
        assert_eq!(tool.backend, Backend::Shell);
        assert!(tool.parameters.check().is_ok());
    };
    check(
        "bash",
        "{command: string, background?: boolean, description?: string, timeout?: integer}",
    );
    check("list_runs", "{}");
    check("kill_run", "{run_id: string}");
}

/// An approval holds whatever a `description` says (`zeph_store::BoundCall`): only the remark of `bash` may have the name.
#[test]
fn no_argument_but_the_remark_is_called_description() {
    for tool in tools() {
        let properties = &tool.parameters.schema()["properties"];
        let has_one = properties.get("description").is_some();
        assert_eq!(has_one, tool.name.as_str() == super::BASH, "{tool:?}");
    }
}

#[test]
fn schemas_have_no_words_that_providers_refuse() {
    for tool in tools() {
        let schema = tool.parameters.schema().to_string();
        for word in ["$schema", "\"format\"", "\"default\"", "null"] {
            assert!(!schema.contains(word), "{schema}");
        }
        assert!(schema.contains("\"properties\""), "{schema}");
    }
}
