//! Help texts of `trust`.

macro_rules! trust_examples {
    () => {
        r#"Examples:
  zeph-host trust                          list the trust that was set, and what is blocked
  zeph-host trust set weather__forecast blocked
  zeph-host trust set server:git verified  trust an MCP server more than by default
  zeph-host trust reset weather__forecast
  zeph-host trust reset plugin:weather"#
    };
}

/// For `-h` of `zeph-host trust`.
pub(crate) const TRUST_EXAMPLES: &str = trust_examples!();

/// For `--help` of `zeph-host trust`.
pub(crate) const TRUST_LONG: &str = concat!(
    trust_examples!(),
    r#"

Tools of the host program and of MCP servers with `trust_level = "trusted"` are trusted, tools of
plugins are verified, tools of other MCP servers are quarantined. Rules with `trust_level` match
calls whose caller and tool are both trusted that much or more. A blocked tool does not run,
whatever rules say.

A tool that keeps failing is blocked automatically for the caller whose calls failed
(`tools.anomaly`); `trust reset` unblocks it for every caller. Trust is kept for the tool of a
plugin or server, not for the name it is offered by, and a change takes effect with the next call
in every running host.

TOOL is a name as in `zeph-host tools`, `PLUGIN__TOOL`, `server:SERVER/TOOL`, or `plugin:NAME` or
`server:NAME` for all tools of a plugin or an MCP server.

JSON of list: a list of {"subject", "caller", "level", "reason", "is_automatic", "at"}
JSON of reset and set: {"subject", "level"}; the level is null after a reset

Exit codes:
  0    success
  2    there is no such tool, or nothing to reset"#
);
