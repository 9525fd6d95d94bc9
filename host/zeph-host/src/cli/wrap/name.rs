//! What a server is called that was given no name.

use std::path::Path;

use zeph_core::id::ServerName;

/// Programs that start another one, which their first argument names that is no option.
const LAUNCHERS: [&str; 11] = [
    "npx", "uvx", "bunx", "pipx", "uv", "node", "deno", "bun", "python", "python3", "pnpm",
];

/// Words of theirs that name nothing.
const VERBS: [&str; 5] = ["run", "exec", "dlx", "x", "tool"];

/// The name of a server that was given none: after its address, or after its command.
pub(in crate::cli) fn name_of(command: &[String], url: Option<&str>) -> ServerName {
    match url {
        Some(url) => ServerName::near(host(url)),
        None => ServerName::near(&named(command)),
    }
}

/// The host of an address.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', ':', '?', '#']).next().unwrap_or_default()
}

/// What a command is called after: its program, or what that starts.
fn named(command: &[String]) -> String {
    let stem = |text: &str| {
        let path = Path::new(text);
        let name = path.file_stem().unwrap_or(path.as_os_str());
        name.to_string_lossy().into_owned()
    };
    let program = command
        .first()
        .map(|program| stem(program))
        .unwrap_or_default();
    let is_launcher = LAUNCHERS.contains(&program.as_str());
    let is_named = |word: &&String| !word.starts_with('-') && !VERBS.contains(&word.as_str());
    match command
        .iter()
        .skip(1)
        .find(is_named)
        .filter(|_| is_launcher)
    {
        Some(package) => {
            // `@scope/name@1.2.3`, `name==1.2`, `folder/server.js`
            let end = package.get(1..).and_then(|rest| rest.find(['@', '=', '[']));
            stem(end.map_or(package, |end| &package[..=end]))
        }
        None => program,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> String {
        let command: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        name_of(&command, None).to_string()
    }

    #[test]
    fn a_server_is_named_after_what_its_command_starts() {
        for (words, name) in [
            (
                &[
                    "npx",
                    "-y",
                    "@modelcontextprotocol/server-filesystem@2025.1.1",
                    ".",
                ][..],
                "server-filesystem",
            ),
            (
                &["uvx", "mcp-server-git==1.0", "--repository", "x"],
                "mcp-server-git",
            ),
            (&["pipx", "run", "mcp-server-fetch"], "mcp-server-fetch"),
            (&["/usr/bin/python3", "-m", "notes"], "notes"),
            (&["node", "dist/index.js"], "index"),
            (&["/opt/hub-server", "npx"], "hub-server"),
            (&["npx"], "npx"),
        ] {
            assert_eq!(of(words), name, "{words:?}");
        }
    }
}
