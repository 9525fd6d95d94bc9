//! A call of a tool of a plugin that is off says so, with the line that helps.

use std::path::PathBuf;

use zeph_core::category::ErrorCategory;
use zeph_core::id::{PluginId, ToolName};

use super::why;
use crate::set::{PluginSet, PluginStanding, Status};

fn set(status: Status) -> PluginSet {
    let standing = PluginStanding {
        name: PluginId("weather".to_owned()),
        path: PathBuf::new(),
        folder_idx: 0,
        is_typed: false,
        n_bytes: 0,
        status,
        good: None,
        tools: Vec::new(),
        accepted: vec![ToolName::new("rain").unwrap()],
        strategies: Vec::new(),
        signature: None,
        awaits_agreement: false,
        has_changed: false,
    };
    let mut set = PluginSet::default();
    set.standings.push(standing);
    set
}

#[test]
fn a_tool_of_a_plugin_that_is_off_says_why_and_what_helps() {
    for (status, words) in [
        (Status::Changed, "zeph-host plugin approve weather"),
        (Status::Disabled, "zeph-host plugin enable weather"),
        (
            Status::Quarantined("it is too old".to_owned()),
            "(it is too old)",
        ),
        (
            Status::Quarantined("`/home/me/x` is gone".to_owned()),
            "it cannot be used; `zeph-host plugin info weather`",
        ),
    ] {
        let set = set(status);
        for tool in ["rain", "weather__rain"] {
            let failure = why(&set, tool, "zeph-host").unwrap();
            assert_eq!(failure.category, ErrorCategory::PolicyBlocked);
            let message = failure.message;
            assert!(
                message.contains("plugin `weather`, which is off"),
                "{message}"
            );
            assert!(message.contains(words), "{message}");
            assert!(!message.contains("/home/me"), "{message}");
        }
        for tool in ["snow", "other__rain", "weather__snow"] {
            assert!(why(&set, tool, "zeph-host").is_none(), "{tool}");
        }
    }
    assert!(why(&set(Status::Active), "rain", "zeph-host").is_none());
}
