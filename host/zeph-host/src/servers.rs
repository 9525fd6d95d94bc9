//! MCP servers of the operator.

#[expect(dead_code, reason = "the connections of servers start them")]
pub(crate) mod launch;
