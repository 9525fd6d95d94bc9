//! `tools.search`: what of it `search_code` is told, and the tools it may call.

use zeph_core::capability::Capability;
use zeph_core::failure::one_line;

use super::Compiling;
use crate::raw::{RawLsp, RawLspKind, RawMcp};

/// The section.
const LSP: &str = "tools.search.lsp";

impl Compiling<'_> {
    /// The tools of the language server: naming them in the operator's files grants them to the plugin `search`.
    pub(super) fn lsp_tools(&mut self, lsp: &RawLsp, mcp: &RawMcp) -> Vec<Capability> {
        if lsp.server.is_empty() {
            if !lsp.requests.is_empty() {
                let message =
                    "no server is named; set `tools.search.lsp.server` to a name of `mcp.servers`";
                self.merged.problem(&format!("{LSP}.requests"), message);
            }
            return Vec::new();
        }
        if !mcp.servers.contains_key(&lsp.server) {
            let message = format!(
                "there is no MCP server `{}`; add it as `[mcp.servers.{}]`",
                lsp.server, lsp.server
            );
            self.merged.problem(&format!("{LSP}.server"), &message);
        }
        if lsp.requests.is_empty() {
            let message = "it is asked nothing; add `[[tools.search.lsp.requests]]` with `kind`, `tool` and `arguments`";
            self.merged.problem(&format!("{LSP}.server"), message);
        }
        let mut kinds: Vec<RawLspKind> = Vec::new();
        let mut tools = Vec::new();
        for request in &lsp.requests {
            let key = format!("{LSP}.requests");
            if kinds.contains(&request.kind) {
                self.merged
                    .problem(&key, "two of its entries have the same `kind`");
            }
            kinds.push(request.kind);
            let mut arguments = request.arguments.iter();
            if let Some(bad) = arguments.find(|argument| !argument.contains('=')) {
                let bad = one_line(bad, 100);
                let message = format!("`{bad}` is not `ARGUMENT=VALUE`, such as `query={{name}}`");
                self.merged.problem(&key, &message);
            }
            let name = format!("{}/{}", lsp.server, request.tool);
            let tool = Capability::Tool { name };
            match tool.problem() {
                Some(problem) => self.merged.problem(&key, problem),
                None if tools.contains(&tool) => {}
                None => tools.push(tool),
            }
        }
        tools
    }
}
