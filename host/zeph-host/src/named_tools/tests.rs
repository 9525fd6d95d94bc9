use serde_json::json;
use zeph_config::{DependencyRule, DependencySettings};
use zeph_core::argument::Parameters;
use zeph_core::id::{PluginId, ToolName};
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};

use super::cycles;

fn tool(name: &str) -> Tool {
    Tool {
        name: ToolName::new(name).unwrap(),
        title: None,
        description: String::new(),
        parameters: Parameters::new(json!({ "type": "object" })).unwrap(),
        output: None,
        kind: ToolKind::Other,
        annotations: Annotations::default(),
        backend: Backend::Wasm(PluginId("ci".to_owned())),
    }
}

#[test]
fn a_cycle_is_found_whichever_names_of_the_tools_it_is_written_with() {
    let tools = [tool("build"), tool("deploy"), tool("lint")];
    let tools: Vec<&Tool> = tools.iter().collect();
    let told = |rules: &[(&str, &[&str])]| {
        let rules = rules.iter().map(|(tool, requires)| {
            let rule = DependencyRule {
                requires: requires.iter().map(|name| (*name).to_owned()).collect(),
                prefers: Vec::new(),
            };
            ((*tool).to_owned(), rule)
        });
        let settings = DependencySettings {
            boost_per_dep: 0.15,
            max_total_boost: 0.2,
            rules: rules.collect(),
        };
        cycles(Some(&settings), &tools)
    };
    let long = told(&[
        ("build", &["ci__lint"]),
        ("lint", &["ci__deploy"]),
        ("deploy", &["ci__build"]),
    ]);
    assert_eq!(
        long,
        [
            "`tools.dependencies.rules.build.requires`: the tools need each other, so none of them can ever run: \
             build needs lint needs deploy needs build"
        ]
    );
    let n_told = |rules: &[(&str, &[&str])]| told(rules).len();
    assert_eq!(n_told(&[("build", &["CI__build"])]), 1);
    assert_eq!(
        n_told(&[
            ("build", &["lint"]),
            ("ci__lint", &["deploy", "build"]),
            ("lint", &[])
        ]),
        1
    );
    assert_eq!(
        n_told(&[("build", &["other__build"]), ("lint", &["ci__build"])]),
        0
    );
    assert!(cycles(None, &tools).is_empty());
}
