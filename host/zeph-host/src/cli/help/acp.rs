//! Help texts of `acp`.

macro_rules! acp_examples {
    () => {
        r#"Examples:
  zeph-host acp                                     an editor starts this
  zeph-host acp --allow 'bash:cargo *'              with rules for the calls of its sessions
  zeph-host acp --provider fast                     with another model than `agent.provider`"#
    };
}

/// For `-h` of `zeph-host acp`.
pub(crate) const ACP_EXAMPLES: &str = acp_examples!();

/// For `--help` of `zeph-host acp`.
pub(crate) const ACP_LONG: &str = concat!(
    acp_examples!(),
    r#"

Be the agent of an editor that speaks the Agent Client Protocol, version 1, on
standard input and output: Zed, JetBrains IDEs, Neovim and others. In Zed's
settings:

  "agent_servers": { "Zeph": { "type": "custom", "command": "zeph-host", "args": ["acp"] } }

Each session works in the directory that the editor names, with the
configuration that holds there. If `tools.file.allowed_paths` or --root name
directories, the editor can choose among them only.

Calls go through the rules, and what they leave open asks in the editor: once,
always (exactly this call, also in later sessions, as `zeph-host approve
--always`), or not. A session has three modes: `ask`, `edit` (files are written
without asking) and `read-only` (what may change something is refused, whatever
the rules and --allow say). A change takes effect at once.

Commands run in the editor's terminal if it has one. What the terminal starts
is this program: it shows what the command prints, while the command runs in
the sandbox as always. Files that are open in the editor are read and written
through it, within the same directories and rules.

MCP servers of the editor run in a sandbox that may read the session's
directory and reaches no host; their tools are pinned in zeph.lock. To grant
one more, write [mcp.servers.NAME].

Exit codes:
  0    the client closed the connection
  2    usage error
  3    the configuration is invalid, or the host cannot start
  130  interrupted by SIGINT (143 by SIGTERM, 129 by SIGHUP)
  141  the client is gone"#
);
