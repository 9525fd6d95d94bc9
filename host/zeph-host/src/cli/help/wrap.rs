//! Help texts of `wrap`.

macro_rules! wrap_examples {
    () => {
        r#"Examples:
  zeph-host wrap -- npx -y @modelcontextprotocol/server-filesystem .
  zeph-host wrap --allow-write ~/notes --host api.example.com -- uvx notes-server
  zeph-host wrap --secret HUB_TOKEN=hub -- uvx hub-server
  zeph-host wrap --learn -- npx -y some-server      print what it lacks
  zeph-host mcp-config cursor --wrap --write        wrap the servers of a client"#
    };
}

/// For `-h` of `zeph-host wrap`.
pub(crate) const WRAP_EXAMPLES: &str = wrap_examples!();

/// For `--help` of `zeph-host wrap`.
pub(crate) const WRAP_LONG: &str = concat!(
    wrap_examples!(),
    r#"

Serves one MCP server as if it were started directly: on standard input and output, with its own
tools, resources, prompts, completions, log messages, progress and questions. The server runs in a
sandbox: it starts in the current directory and may read it (or the directories of --root, if
given), system programs and toolchains, and has a private home directory. Nothing else exists for
it, and it reaches no network but the hosts of --host. Neither the home directory nor a directory
that contains it is allowed by default.

npx, uvx, pipx run and bunx commands are installed first, in a separate step that reaches only the
registries that these tools are configured to use, and then run from a read-only directory.

The command, what was installed for it, and its tools, prompts, resource templates and instructions
are recorded in zeph.lock the first time. If any of it changes, the server is off until you have
looked at the difference with `zeph-host mcp approve NAME`.

Calls of its tools go through the rules of the configuration, as `mcp_NAME_TOOL`: deny rules
refuse, ask rules ask through the client. Calls that no rule mentions are allowed, because the
user of the client chose this server; with --ask they need approval. Outputs are filtered, known
secrets removed, long ones stored (`read_overflow` returns them), and every call is in the audit
log.

If the configuration has [mcp.servers.NAME], its keys count too: COMMAND can then be omitted and
must otherwise be the same; grants of both are added.

With --url, the server is reached over HTTP instead: no sandbox is needed, all else is the same.

Options come before `--`. What the server was refused is printed on standard error with the option
that would allow it. With --learn, the calls of the server that take a path are watched, so that
this is complete: nothing is allowed that was refused before.

Exit codes:
  0    the client closed the connection
  2    usage error
  3    the server, or the host, cannot start
  141  the client is gone"#
);
