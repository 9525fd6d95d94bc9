//! By which names rules and records know the tools of one server. Pure.
//!
//! `mcp_SERVER_TOOL` can be the name of two tools: of the tool `enterprise_search` of `github` and of `search` of `github_enterprise`, or of
//! `item.get` and `item_get` of one server. Who owns it depends on the configuration and on what was accepted alone, never on what runs or on
//! the order of a list: a rule that means one tool must never come to mean another. The other tool has a hash in its name.

use std::collections::BTreeMap;

use zeph_core::failure::one_line;
use zeph_core::id::{ServerName, ToolName};
use zeph_core::policy::tool_key;
use zeph_core::server::{self, ServerTool};

/// The names of the tools of one server.
#[derive(Debug)]
pub(crate) struct Naming<'a> {
    pub(super) server: &'a ServerName,
    /// The configured servers to which some names of its tools would belong.
    longer: Vec<&'a ServerName>,
    /// How many of its accepted tools come out as each name, as rules compare names.
    n_alike: BTreeMap<String, usize>,
}

impl<'a> Naming<'a> {
    /// The names of the tools of `server` among the configured `servers`; `accepted`: its own names of all tools that were accepted.
    pub(crate) fn new<'t>(
        server: &'a ServerName,
        servers: impl IntoIterator<Item = &'a ServerName>,
        accepted: impl IntoIterator<Item = &'t String>,
    ) -> Self {
        let own = server::prefix(server).to_ascii_lowercase();
        let is_longer = |other: &&ServerName| {
            let other = server::prefix(other).to_ascii_lowercase();
            other.len() > own.len() && other.starts_with(&own)
        };
        let mut n_alike = BTreeMap::new();
        for tool in accepted {
            let named = ServerTool::new(server.clone(), tool);
            *n_alike.entry(key(&named)).or_default() += 1;
        }
        Self {
            server,
            longer: servers.into_iter().filter(is_longer).collect(),
            n_alike,
        }
    }

    /// The tool that the server calls `own`, and why it has a hash in its name if it has.
    pub(crate) fn named(&self, own: &str) -> (ServerTool, Option<String>) {
        let named = ServerTool::new(self.server.clone(), own);
        let plain = named.plain_name();
        let key = tool_key(plain.as_str());
        let is_exact = key == server::prefix(self.server).to_ascii_lowercase() + own;
        let n_alike = self.n_alike.get(&key).copied().unwrap_or(1);
        let why = match server::owner(plain.as_str(), self.longer.iter().copied()) {
            Some(other) => format!(
                "names that begin with `{}` belong to MCP server `{other}`",
                server::prefix(other)
            ),
            None if is_exact || n_alike <= 1 => return (named, None),
            None => format!("another of its tools comes out as `{plain}`"),
        };
        (named.hashed(), Some(why))
    }

    /// Whether the operator chose a name for `tool` that another tool of the server has.
    pub(super) fn is_taken(&self, chosen: &ToolName, tool: &ServerTool) -> bool {
        let chosen = tool_key(chosen.as_str());
        chosen != key(tool) && self.n_alike.contains_key(&chosen)
    }

    /// What to know before a rule for the tools of the server is written, one sentence for each server that it may concern.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let own = server::prefix(self.server);
        self.longer.iter().map(move |other| {
            format!(
                "tool names that begin with `{}` belong to MCP server `{other}`; a rule for `{own}*` covers the tools of both",
                server::prefix(other)
            )
        })
    }
}

fn key(tool: &ServerTool) -> String {
    tool_key(tool.plain_name().as_str())
}

/// What is told of a tool that has a hash in its name.
pub(super) fn renamed(own: &str, tool: &ServerTool, why: &str) -> String {
    let own = one_line(own, 80);
    format!("`{own}` is offered as `{}`: {why}", tool.plain_name())
}

#[cfg(test)]
mod tests {
    use zeph_core::id::ServerName;

    use super::Naming;

    fn names(server: &str, tools: &[&str]) -> Vec<(String, bool)> {
        let servers = ["db", "db_item", "DB-x"].map(|name| ServerName::new(name).unwrap());
        let accepted: Vec<String> = tools.iter().map(|tool| (*tool).to_owned()).collect();
        let server = ServerName::new(server).unwrap();
        let naming = Naming::new(&server, &servers, &accepted);
        let named = tools.iter().map(|tool| naming.named(tool).0);
        let named = named.map(|tool| (tool.plain_name().to_string(), tool.is_hashed));
        named.collect()
    }

    #[test]
    fn names_that_come_out_alike_are_told_apart_whatever_their_order() {
        let tools = ["item_get", "get", "get.all", "get_all", "get/all", "Get"];
        let mut found = names("db", &tools);
        let hashed: Vec<bool> = found.iter().map(|(_, is_hashed)| *is_hashed).collect();
        assert_eq!(hashed, [true, false, true, false, true, true], "{found:?}");
        let mut turned = tools;
        turned.reverse();
        let mut other = names("db", &turned);
        found.sort();
        other.sort();
        assert_eq!(found, other);
        found.dedup_by_key(|(name, _)| name.to_lowercase());
        assert_eq!(found.len(), tools.len());
        assert_eq!(
            names("db_item", &["get"]),
            [("mcp_db_item_get".to_owned(), false)]
        );
        assert_eq!(
            names("db", &["item.get"])[0].0.len(),
            "mcp_db_12345678_item_get".len()
        );
        assert_eq!(
            names("db", &["read.all"]),
            [("mcp_db_read_all".to_owned(), false)]
        );
    }
}
