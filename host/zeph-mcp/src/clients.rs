//! MCP clients that can be told about this server: where each keeps its list of servers, and how it spells an entry.
//!
//! Pure: text in, text out. `zeph-host mcp-config` finds the files, reads and writes them.

mod entry;
mod error;
mod json;
mod started;
#[cfg(test)]
mod tests;
mod toml;
mod unwrap;
mod wrap;

use self::entry::Entry;
pub use self::entry::{OWN_NAME, Server, Transport, is_host};
pub use self::error::MergeError;
use self::json::Dialect;
pub use self::started::{ServerStart, StartedServer};
pub use self::unwrap::{Unwrapped, UnwrappedFile};
pub use self::wrap::{MovedSecret, Unwrappable, Wrapped, WrappedFile, WrappedServer, Wrapper};

/// A client, as a row of [`CLIENTS`].
#[derive(Debug)]
pub struct Client {
    /// As typed on the command line.
    pub name: &'static str,
    /// As its vendor writes it.
    pub title: &'static str,
    /// Where its list of servers is.
    pub file: ClientFile,
    /// The directory in which it starts a server.
    pub starts_in: StartDirectory,
    format: Format,
    /// The key of the object or table with the servers.
    servers: &'static str,
    /// The `type` of a server that speaks over stdio, for clients that want one.
    stdio_type: Option<&'static str>,
    http: Option<HttpEntry>,
}

/// Where a client keeps its list of servers.
#[derive(Debug)]
pub enum ClientFile {
    /// A path below the project's directory.
    Project(&'static str),
    /// A path below the user's directory of configuration: `$XDG_CONFIG_HOME`, else `~/.config`, on every system.
    Config(&'static str),
    /// A path below the directory where desktop programs keep their settings: `~/Library/Application Support` on macOS,
    /// the user's directory of configuration elsewhere.
    Application(&'static str),
    /// A file in the directory that a variable names; without it, in a directory below the home.
    Own {
        /// The variable.
        variable: &'static str,
        /// The directory below the home.
        otherwise: &'static str,
        /// The name of the file.
        file: &'static str,
    },
}

/// The directory in which a client starts a server, which decides what the tools may access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartDirectory {
    /// The project's.
    Project,
    /// Not always the project's, but the client replaces this variable by it.
    Variable(&'static str),
    /// Any.
    Unknown,
}

#[derive(Debug)]
enum Format {
    Json(Dialect),
    Toml,
}

/// How a client spells a server behind an address.
#[derive(Debug)]
struct HttpEntry {
    kind: Option<&'static str>,
    url: &'static str,
    token: TokenEntry,
}

/// How a client is told where the token of a server is.
#[derive(Debug, Clone, Copy)]
enum TokenEntry {
    /// An `Authorization` header, with the variable between these two texts.
    Header(&'static str, &'static str),
    /// A header as above; the client asks its user for the value and keeps it (`inputs`).
    Input,
    /// A key whose value is the name of the variable.
    Key(&'static str),
    /// Not at all: it reads no variables.
    None,
}

/// Every client, in the order of the help.
///
/// Sources: Claude Code <https://code.claude.com/docs/en/mcp>; Claude Desktop
/// <https://modelcontextprotocol.io/docs/develop/connect-local-servers>; Codex `docs/config.md` of `openai/codex`; Cursor
/// <https://cursor.com/docs/mcp>; VS Code <https://code.visualstudio.com/docs/copilot/reference/mcp-configuration>; Zed
/// `docs/src/ai/mcp.md` of `zed-industries/zed`; Gemini CLI `docs/tools/mcp-server.md` of `google-gemini/gemini-cli`.
pub const CLIENTS: [Client; 7] = [
    Client {
        name: "claude-code",
        title: "Claude Code",
        file: ClientFile::Project(".mcp.json"),
        starts_in: StartDirectory::Project,
        format: Format::Json(Dialect::STRICT),
        servers: "mcpServers",
        stdio_type: Some("stdio"),
        http: Some(HttpEntry {
            kind: Some("http"),
            url: "url",
            token: TokenEntry::Header("${", "}"),
        }),
    },
    Client {
        name: "claude-desktop",
        title: "Claude Desktop",
        file: ClientFile::Application("Claude/claude_desktop_config.json"),
        starts_in: StartDirectory::Unknown,
        format: Format::Json(Dialect::STRICT),
        servers: "mcpServers",
        stdio_type: None,
        // Remote servers are connectors of an account; the file takes commands only.
        http: None,
    },
    Client {
        name: "codex",
        title: "Codex",
        file: ClientFile::Own {
            variable: "CODEX_HOME",
            otherwise: ".codex",
            file: "config.toml",
        },
        starts_in: StartDirectory::Project,
        format: Format::Toml,
        servers: "mcp_servers",
        stdio_type: None,
        http: Some(HttpEntry {
            kind: None,
            url: "url",
            token: TokenEntry::Key("bearer_token_env_var"),
        }),
    },
    Client {
        name: "cursor",
        title: "Cursor",
        file: ClientFile::Project(".cursor/mcp.json"),
        starts_in: StartDirectory::Variable("${workspaceFolder}"),
        format: Format::Json(Dialect::COMMENTS_AND_COMMAS),
        servers: "mcpServers",
        stdio_type: Some("stdio"),
        http: Some(HttpEntry {
            kind: None,
            url: "url",
            token: TokenEntry::Header("${env:", "}"),
        }),
    },
    Client {
        name: "vscode",
        title: "VS Code",
        file: ClientFile::Project(".vscode/mcp.json"),
        starts_in: StartDirectory::Project,
        format: Format::Json(Dialect::COMMENTS_AND_COMMAS),
        servers: "servers",
        stdio_type: Some("stdio"),
        http: Some(HttpEntry {
            kind: Some("http"),
            url: "url",
            token: TokenEntry::Input,
        }),
    },
    Client {
        name: "zed",
        title: "Zed",
        file: ClientFile::Config("zed/settings.json"),
        starts_in: StartDirectory::Project,
        format: Format::Json(Dialect::COMMENTS_AND_COMMAS),
        servers: "context_servers",
        stdio_type: None,
        http: Some(HttpEntry {
            kind: None,
            url: "url",
            token: TokenEntry::None,
        }),
    },
    Client {
        name: "gemini",
        title: "Gemini CLI",
        file: ClientFile::Project(".gemini/settings.json"),
        starts_in: StartDirectory::Project,
        // Comments are stripped before it is parsed; commas are not.
        format: Format::Json(Dialect::COMMENTS),
        servers: "mcpServers",
        stdio_type: None,
        http: Some(HttpEntry {
            kind: None,
            url: "httpUrl",
            token: TokenEntry::Header("${", "}"),
        }),
    },
];

impl Client {
    /// The client with this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.name == name)
    }

    /// Whether it can use a server behind an address.
    pub fn speaks_http(&self) -> bool {
        self.http.is_some()
    }

    /// Whether it can be told which variable holds the token of a server.
    pub fn reads_token(&self) -> bool {
        let http = self.http.as_ref();
        http.is_some_and(|http| !matches!(http.token, TokenEntry::None))
    }

    /// What the user adds to the client's file by hand: the file as it would be if nothing else were in it.
    ///
    /// Errors: the client cannot use such a server.
    pub fn snippet(&self, server: &Server) -> Result<String, MergeError> {
        self.merge("", server, false)
    }

    /// The client's file with the server in it; equal to `text` if it is already there.
    ///
    /// Whatever else is in the file stays as it is: other entries, their order, comments, line ends, and keys of the entry that
    /// the host does not set. An entry of that name that starts another program is replaced only if `force` says so.
    ///
    /// Errors: `text` is not in the client's format, has something else where the servers should be, or names the server
    /// twice; the entry is another program's; the client cannot use such a server.
    pub fn merge(&self, text: &str, server: &Server, force: bool) -> Result<String, MergeError> {
        let entry = Entry::new(self, server)?;
        match &self.format {
            Format::Json(dialect) => json::merge(text, dialect, self.servers, &entry, force),
            Format::Toml => toml::merge(text, self.servers, &entry, force),
        }
    }
}
