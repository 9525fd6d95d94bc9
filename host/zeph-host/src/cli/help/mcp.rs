//! Help texts of `mcp` and of `mcp-config`.

macro_rules! mcp_config_examples {
    () => {
        r#"Examples:
  zeph-host mcp-config claude-code                   print the snippet
  zeph-host mcp-config claude-code --write           add it to .mcp.json of this project
  zeph-host --root ~/notes mcp-config claude-desktop --write
  zeph-host mcp-config codex --http http://127.0.0.1:8765 --token-var ZEPH_TOKEN
  zeph-host mcp-config cursor --wrap                 show how its servers would be wrapped
  zeph-host mcp-config cursor --wrap --write         wrap them; --unwrap undoes it"#
    };
}

/// For `-h` of `zeph-host mcp-config`.
pub(crate) const MCP_CONFIG_EXAMPLES: &str = mcp_config_examples!();

/// For `--help` of `zeph-host mcp-config`.
pub(crate) const MCP_CONFIG_LONG: &str = concat!(
    mcp_config_examples!(),
    r#"

The client starts this program with `serve` and the global options given here: --config, --set,
--root, --plugins and --no-project. Without --root, tools can access the directory in which the
client starts its servers, which is the project; for claude-desktop it is the current directory.

Files that --write and --unwrap change:
  claude-code      .mcp.json of the project
  claude-desktop   claude_desktop_config.json of the user
  codex            config.toml of the user ($CODEX_HOME, else ~/.codex)
  cursor           .cursor/mcp.json of the project
  vscode           .vscode/mcp.json of the project
  zed              settings.json of the user
  gemini           .gemini/settings.json of the project

Other servers and settings, comments, and the order and permissions of the file stay as they are. A
copy of the old file is left beside it, as NAME.bak. A file that is not valid is not changed. An
entry of the same name is updated if it starts zeph-host; otherwise --force replaces it.

With --http, a URL without a path gets the path /mcp. --token-var names the environment variable
from which the client reads the token; for vscode it names the input for which VS Code asks. zed
reads no variables, and claude-desktop does not connect to addresses.

--wrap rewrites the servers that are already in the file, so that the client starts each through
`zeph-host wrap`: in a sandbox, with its tools pinned, under the rules of this program. Without
--write, the difference is printed. What looks like a secret in `env` is moved to `zeph-host
secret`; references to variables stay. A server may read the directory in which it is started, and
the directories that its arguments name; `zeph-host wrap --help` says how to allow more. A server
that is reached by an address is wrapped if all its credentials are literal headers; they are
moved, too.

The file as it was is kept beside it, as NAME.wrapped-DIGEST.bak, readable by its owner alone.
--unwrap puts it back, byte for byte; it changes the file without --write. If the file was edited
meanwhile, the edits stay, and only the wrapped servers are turned back.

Exit codes:
  0    printed, changed, or nothing to change
  1    the client's file cannot be read or written
  2    usage error, or the file is not valid or has another server of that name"#
);

macro_rules! mcp_examples {
    () => {
        r#"Examples:
  zeph-host mcp                                      start the servers, and list them
  zeph-host mcp test files                           why does this one not work?
  zeph-host mcp info files --json
  zeph-host mcp approve files                        show what changed, and accept it
  zeph-host mcp update files                         install its newest version
  zeph-host mcp forget files                         it is no longer in the configuration"#
    };
}

/// For `-h` of `zeph-host mcp`.
pub(crate) const MCP_EXAMPLES: &str = mcp_examples!();

/// For `-h` of `zeph-host mcp approve`.
pub(crate) const MCP_APPROVE_EXAMPLES: &str = "\
Examples:
  zeph-host mcp approve files
  zeph-host mcp approve files --yes --json

Without a terminal and without --yes, nothing is approved, and the exit code is 5.";

/// For `-h` of `zeph-host mcp login`.
pub(crate) const MCP_LOGIN_EXAMPLES: &str = "\
Examples:
  zeph-host mcp login tickets
  zeph-host mcp login tickets --no-browser

The login may reach the host of the server's URL and those of mcp.servers.NAME.hosts. The tokens are
stored in a file that only you can read, and renewed before they expire. No other command opens a
browser.";

/// For `--help` of `zeph-host mcp`.
pub(crate) const MCP_LONG: &str = concat!(
    mcp_examples!(),
    r#"

A server of the configuration, [mcp.servers.NAME], runs in a sandbox of its own, or is reached by
URL. Its tools are offered as mcp_NAME_TOOL, under the same rules as all others; rules hold under
this name whatever a tool is offered as. `run` and `serve` start every server; a command that
makes one call starts the server of its tool.

A server is pinned when it is first seen, in zeph.lock beside your configuration file: its command
line or URL, the package that was installed for it, and its tools, instructions, prompts and
resource templates. When one of these differs the server is off until it is approved. It is not
run while its command line or package differs.

States: starting; active; changed (off until approved); failed (with the reason and the next try);
disabled; needs login. List also shows servers that run through `zeph-host wrap` and are not in
the configuration, without starting them: wrapped, changed, or not started; info shows what was
accepted of one. A server that is in zeph.lock alone, because it was removed from the
configuration, is pinned; forget removes that, its login, and what was approved and set for its
tools. Servers that a client starts without `wrap` are named, too.

WALLS is the sandbox around a server: full, landlock-only, seatbelt or none, with the layers that
are missing; remote for a URL; - when it is not known. Of a wrapped server it is that of its last
start, because the client that starts it may have chosen other options than yours.

JSON of list: a list of {"name", "status", "reason", "next_try_secs", "place", "walls",
"missing_layers", "trust_level", "server", "tools", "notes"}; of others {"name", "status",
"wrapped", "place", "walls", "missing_layers", "tools", "started_by"}. Info and test describe the
tools, and add "accepted", "prompts", "resource_templates" and "instructions", and "left_out",
"refused" and "stderr" of a server of the configuration. Approve:
{"name", "changed", "approved", "changes"}. Update: {"name", "changed", "approved", "newest"}.
Forget: {"name", "forgotten", "was_pinned", "was_logged_in", "approvals", "trust", "home"}.

Exit codes:
  0    success; for test: the server is active
  1    the server does not run
  2    there is no such server
  5    approval is needed: --yes, or a terminal"#
);
