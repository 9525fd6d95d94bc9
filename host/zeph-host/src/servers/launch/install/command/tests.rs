use super::*;

fn read(line: &str) -> Result<Option<InstallCommand>, String> {
    let mut words = line.split_whitespace().map(str::to_owned);
    let program = words.next().unwrap();
    InstallCommand::read(&program, &words.collect::<Vec<_>>())
}

/// `tool | packages | program | arguments`.
fn shown(command: &InstallCommand) -> String {
    let packages: Vec<String> = command.packages.iter().map(PackageSpec::text).collect();
    let program = command.program.as_deref().unwrap_or("-");
    format!(
        "{:?} | {} | {program} | {}",
        command.tool,
        packages.join(" "),
        command.arguments.join(" ")
    )
}

#[test]
fn understood_forms() {
    for (line, expect) in [
        ("npx server", "Npm | server | - | "),
        (
            "npx -y @scope/server /tmp --flag",
            "Npm | @scope/server | - | /tmp --flag",
        ),
        (
            "npx --yes server@1.2.3 -p 80",
            "Npm | server@1.2.3 | - | -p 80",
        ),
        (
            "npx -y @scope/server@^2 .",
            "Npm | @scope/server@^2 | - | .",
        ),
        ("npx -y server@latest", "Npm | server@latest | - | "),
        (
            "npx -p server -p plugin@2 run x",
            "Npm | server plugin@2 | run | x",
        ),
        (
            "npx --package=@s/server -- run --help",
            "Npm | @s/server | run | --help",
        ),
        ("npx -y -- server -- x", "Npm | server | - | -- x"),
        ("/usr/bin/npx -y server", "Npm | server | - | "),
        ("bunx server", "Bun | server | - | "),
        ("bunx --bun -p server run", "Bun | server | run | "),
        (
            "uvx mcp-server-git --repository .",
            "Uv | mcp-server-git | mcp-server-git | --repository .",
        ),
        (
            "uvx mcp-server-git@0.6.2",
            "Uv | mcp-server-git==0.6.2 | mcp-server-git | ",
        ),
        (
            "uvx mcp-server-git@latest",
            "Uv | mcp-server-git | mcp-server-git | ",
        ),
        (
            "uvx --from server[cli]==1.0 run x",
            "Uv | server[cli]==1.0 | run | x",
        ),
        (
            "uvx --python 3.12 --with plugin>=2 server",
            "Uv | server plugin>=2 | server | ",
        ),
        ("pipx run server==2.0 x", "Pip | server==2.0 | server | x"),
        (
            "pipx run --spec server>=2,<3 run x",
            "Pip | server>=2,<3 | run | x",
        ),
    ] {
        let command = read(line).unwrap().unwrap();
        assert_eq!(shown(&command), expect, "{line}");
    }
}

#[test]
fn what_installs_nothing_is_left_alone() {
    for line in [
        "node server.js",
        "/opt/servers/run --npx",
        "python3 -m server",
        "npm start",
        "uv run server",
        "docker run npx",
    ] {
        assert_eq!(read(line), Ok(None), "{line}");
    }
}

/// Each could name other code than a package of the registry, or other registries.
#[test]
fn what_is_not_understood_is_an_error_with_the_forms() {
    for line in [
        "npx",
        "npx -y",
        "npx -c server",
        "npx --registry=https://registry.example.org server",
        "npx --yes=false server",
        "npx -y git+https://example.org/x.git",
        "npx -y https://example.org/x.tgz",
        "npx -y ./server",
        "npx -y ../server",
        "npx -y /srv/server",
        "npx -y file:server",
        "npx -y npm:server",
        "npx -y github:user/server",
        "npx -y user/server",
        "npx -y server@npm:other",
        "npx -y server@file:../x",
        "npx -y server@github:user/x",
        "npx -y server@https://example.org/x",
        "npx -y @scope",
        "npx -y @/x",
        "npx -y @a/b/c",
        "npx -p",
        "npx -p server ../run",
        "npx -y --",
        "npx -y -- -x",
        "bunx --registry x server",
        "uvx",
        "uvx --index-url https://example.org server",
        "uvx --from git+https://example.org/x run",
        "uvx --from ./server run",
        "uvx --from server@https://example.org/x run",
        "uvx --python /srv/python server",
        "uvx --with-editable . server",
        "uvx --with-requirements r.txt server",
        "uvx server@",
        "uvx --from server[x run",
        "uvx --from server /bin/sh",
        "pipx install server",
        "pipx run",
        "pipx run --pip-args=--index-url=x server",
        "pipx run https://example.org/run.py",
        "pipx run ./run.py",
        "npm exec server",
        "npm x server",
        "pnpm dlx server",
        "yarn dlx server",
        "bun x server",
        "uv tool run server",
    ] {
        let problem = read(line).expect_err(line);
        assert!(problem.contains("understood: `npx"), "{line}: {problem}");
        assert!(!problem.contains('\n'));
    }
}

#[test]
fn packages_that_are_added_while_it_runs_are_seen() {
    for (line, is_one) in [
        ("uv run --with mcp-server-time mcp-server-time", true),
        (
            "uv run --python 3.12 --with=mcp[cli] mcp run server.py",
            true,
        ),
        (
            "/usr/bin/uv --directory /srv run --with-requirements r.txt server",
            true,
        ),
        ("uv --directory /srv run server", false),
        ("uv run server --with-tools", false),
        ("python3 run --with x", false),
    ] {
        let mut words = line.split(' ').map(str::to_owned);
        let program = words.next().unwrap();
        let problem = super::adds_packages(&program, &words.collect::<Vec<_>>());
        assert_eq!(problem.is_some(), is_one, "{line}");
    }
}
