//! `zeph-host mcp-config`: the files of clients, as their users have them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use crate::product::{Product, Ran};

const CLIENTS: [&str; 7] = [
    "claude-code",
    "claude-desktop",
    "codex",
    "cursor",
    "vscode",
    "zed",
    "gemini",
];

fn write(product: &Product, args: &[&str]) -> Ran {
    product.run(&[&["mcp-config", "--write"], args].concat())
}

fn json_of(product: &Product, path: &str) -> Value {
    serde_json::from_str(&product.read(path)).unwrap()
}

/// What stands in a directory of the workspace, sorted.
fn names(product: &Product, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(product.work.join(folder)).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn every_client_has_a_snippet_that_starts_this_program_and_a_file_of_its_own() {
    let product = Product::new();
    let program = product.command(&[]).get_program().to_owned();
    let program = program.to_str().unwrap();
    for client in CLIENTS {
        let ran = product.run(&["mcp-config", client]);
        assert_eq!(ran.code, Some(0), "{client}: {ran:?}");
        assert!(ran.stdout.contains(program), "{client}: {}", ran.stdout);
        assert!(ran.stdout.contains("serve"), "{client}: {}", ran.stdout);

        let ran = write(&product, &[client]);
        assert_eq!(ran.code, Some(0), "{client}: {ran:?}");
        assert_eq!(ran.stdout, "", "{client}");
        let path = ran.stderr.split('`').nth(1).unwrap_or_default();
        assert!(
            fs::read_to_string(path).unwrap().contains(program),
            "{client}: {}",
            ran.stderr
        );
    }
    for path in [".codex/config.toml", ".config/zed/settings.json"] {
        assert!(product.home.join(path).is_file(), "{path}");
    }
    for path in [
        ".mcp.json",
        ".cursor/mcp.json",
        ".vscode/mcp.json",
        ".gemini/settings.json",
    ] {
        assert!(product.work.join(path).is_file(), "{path}");
    }
}

#[test]
fn the_options_given_are_those_of_the_server() {
    let product = Product::new();
    let args = |words: &[&str]| {
        let ran = product.run(&[words, &["mcp-config", "claude-code"]].concat());
        let snippet: Value = serde_json::from_str(&ran.stdout).unwrap();
        snippet["mcpServers"]["zeph"]["args"].clone()
    };
    let work = product.work.to_str().unwrap();
    let path = |name: &str| format!("{work}/{name}");
    assert_eq!(args(&[]), json!(["serve"]));
    let typed = [
        "--config",
        "c.toml",
        "--plugins",
        "p",
        "--root",
        "r",
        "--no-project",
    ];
    let expected = json!([
        "serve",
        "--config",
        path("c.toml"),
        "--plugins",
        path("p"),
        "--root",
        path("r"),
        "--no-project"
    ]);
    assert_eq!(args(&typed), expected);
    assert_eq!(
        args(&["--set", "limits.cpu_secs=60"]),
        json!(["serve", "--set", "limits.cpu_secs=60"])
    );
}

#[test]
fn a_second_time_changes_nothing_and_a_change_leaves_the_old_file_beside_it() {
    let product = Product::new();
    let old = "{\n  \"mcpServers\": { \"other\": { \"command\": \"x\" } }\n}\n";
    product.file(".mcp.json", old);
    let file = product.work.join(".mcp.json");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();

    assert_eq!(write(&product, &["claude-code"]).code, Some(0));
    let first = product.read(".mcp.json");
    assert_eq!(names(&product, ""), [".mcp.json", ".mcp.json.bak"]);
    assert_eq!(product.read(".mcp.json.bak"), old);
    for name in [".mcp.json", ".mcp.json.bak"] {
        let mode = product
            .work
            .join(name)
            .metadata()
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }

    let again = write(&product, &["claude-code"]);
    assert!(again.stderr.contains("already"), "{again:?}");
    assert_eq!(product.read(".mcp.json"), first);
    assert_eq!(names(&product, ""), [".mcp.json", ".mcp.json.bak"]);

    // Another change keeps the first copy too.
    assert_eq!(
        write(&product, &["claude-code", "--name", "second"]).code,
        Some(0)
    );
    assert_eq!(product.read(".mcp.json.bak"), old);
    assert_eq!(product.read(".mcp.json.bak1"), first);
    let servers = json_of(&product, ".mcp.json")["mcpServers"].clone();
    let names: Vec<&String> = servers.as_object().unwrap().keys().collect();
    assert_eq!(names, ["other", "second", "zeph"]);
}

#[test]
fn a_file_that_is_broken_or_not_ours_is_left_alone() {
    let product = Product::new();
    let foreign = "{\"mcpServers\": {\"zeph\": {\"command\": \"/bin/other\"}}}";
    for (text, args, expected) in [
        (
            "{\n  \"mcpServers\": {\n",
            &["claude-code"][..],
            "line 3, column 1",
        ),
        ("{ // mine\n}", &["claude-code"], "line 1, column 3"),
        ("[]", &["claude-code"], "has another type"),
        (foreign, &["claude-code"], "--force"),
    ] {
        product.file(".mcp.json", text);
        let ran = write(&product, args);
        assert_eq!(ran.code, Some(2), "{text}: {ran:?}");
        assert!(ran.stderr.contains(expected), "{text}: {}", ran.stderr);
        assert!(ran.stderr.contains(".mcp.json"), "{text}: {}", ran.stderr);
        assert_eq!(product.read(".mcp.json"), text);
        assert_eq!(names(&product, ""), [".mcp.json"]);
    }
    product.file(".mcp.json", b"\xff{}");
    assert_eq!(write(&product, &["claude-code"]).code, Some(1));
    product.file(".mcp.json", foreign);
    assert_eq!(write(&product, &["claude-code", "--force"]).code, Some(0));
    assert_eq!(product.read(".mcp.json.bak"), foreign);
}

/// A repository is written by others: a link in it must not choose a file of the user's.
#[test]
fn links_are_followed_where_their_owner_is_the_user() {
    let product = Product::new();
    let dotfiles = product.home.join("dotfiles");
    fs::create_dir_all(&dotfiles).unwrap();
    fs::write(dotfiles.join("settings.json"), "{} // mine\n").unwrap();
    fs::create_dir_all(product.home.join(".config/zed")).unwrap();
    let link = product.home.join(".config/zed/settings.json");
    symlink(dotfiles.join("settings.json"), &link).unwrap();
    assert_eq!(write(&product, &["zed"]).code, Some(0));
    assert!(link.symlink_metadata().unwrap().is_symlink());
    let text = fs::read_to_string(dotfiles.join("settings.json")).unwrap();
    assert!(
        text.contains("context_servers") && text.contains("// mine"),
        "{text}"
    );

    symlink(
        dotfiles.join("settings.json"),
        product.work.join(".mcp.json"),
    )
    .unwrap();
    symlink(&dotfiles, product.work.join(".cursor")).unwrap();
    symlink(
        product.home.join("nowhere"),
        product.work.join("dangling.json"),
    )
    .unwrap();
    fs::write(dotfiles.join("settings.json"), "{}").unwrap();
    for client in ["claude-code", "cursor"] {
        let ran = write(&product, &[client]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("--file"), "{}", ran.stderr);
    }
    assert_eq!(
        fs::read_to_string(dotfiles.join("settings.json")).unwrap(),
        "{}"
    );
    assert!(!dotfiles.join("mcp.json").exists());
    assert_eq!(
        write(&product, &["claude-code", "--file", "dangling.json"]).code,
        Some(1)
    );
    assert_eq!(
        write(&product, &["claude-code", "--file", ".mcp.json"]).code,
        Some(0)
    );
    let text = fs::read_to_string(dotfiles.join("settings.json")).unwrap();
    assert!(text.contains("mcpServers"), "{text}");
}

#[test]
fn what_cannot_be_an_entry_is_refused() {
    let product = Product::new();
    for (args, expected) in [
        (&["claude-code", "--http", "127.0.0.1:1"][..], "http://"),
        (&["claude-code", "--http", "http://"], "host"),
        (
            &["claude-code", "--http", "http://user:secret@host/mcp"],
            "credentials",
        ),
        (
            &["claude-code", "--http", "http://${HOME}/mcp"],
            "characters",
        ),
        (
            &[
                "claude-code",
                "--http",
                "http://h",
                "--token-var",
                "zeph_sk 1",
            ],
            "name of a variable",
        ),
        (&["claude-code", "--name", "a b"], "letters"),
        (&["claude-code", "--name", ""], "letters"),
        (
            &["claude-desktop", "--http", "http://h"],
            "starts its servers itself",
        ),
        (
            &["zed", "--http", "http://h", "--token-var", "T"],
            "variable",
        ),
        (&["emacs"], "claude-code"),
        (&["codex", "--force"], "--write"),
    ] {
        let ran = product.run(&[&["mcp-config"], args].concat());
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{args:?}");
    }
    let ran = product.run(&[
        "mcp-config",
        "codex",
        "--http",
        "http://127.0.0.1:8765",
        "--token-var",
        "T",
    ]);
    let expected =
        "[mcp_servers.zeph]\nurl = \"http://127.0.0.1:8765/mcp\"\nbearer_token_env_var = \"T\"\n";
    assert_eq!(ran.stdout, expected);
}

const WRAPPABLE: &str = r#"{
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "server-files", "."] },
    "hub": {
      "command": "uvx",
      "args": ["hub"],
      "env": { "HUB_TOKEN": "hub_0123456789abcdef", "LEVEL": "info" }
    },
    "far": { "type": "http", "url": "https://far.example.com/mcp" }
  }
}
"#;

fn mode(path: &std::path::Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

/// The copies of files whose servers were wrapped.
fn copies(product: &Product) -> Vec<String> {
    let names = names(product, "").into_iter();
    names.filter(|name| name.contains(".wrapped-")).collect()
}

#[test]
fn servers_are_wrapped_after_a_preview_and_come_back_to_the_byte() {
    let product = Product::new();
    product.file(".mcp.json", WRAPPABLE);
    let file = product.work.join(".mcp.json");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();

    let preview = product.run(&["mcp-config", "claude-code", "--wrap"]);
    assert_eq!(preview.code, Some(0), "{preview:?}");
    assert!(
        preview.stdout.contains("+      \"command\": \""),
        "{}",
        preview.stdout
    );
    assert!(preview.stdout.contains("--secret"), "{}", preview.stdout);
    let all = format!("{}{}", preview.stdout, preview.stderr);
    assert!(!all.contains("hub_0123456789abcdef"), "{all}");
    for expected in ["`far` is not wrapped", "hub_HUB_TOKEN", "--write"] {
        assert!(preview.stderr.contains(expected), "{}", preview.stderr);
    }
    assert_eq!(product.read(".mcp.json"), WRAPPABLE);
    assert_eq!(names(&product, ""), [".mcp.json"]);

    assert_eq!(write(&product, &["claude-code", "--wrap"]).code, Some(0));
    let servers = json_of(&product, ".mcp.json")["mcpServers"].clone();
    let args = |name: &str| servers[name]["args"].clone();
    let hub = json!([
        "wrap",
        "--name",
        "hub",
        "--env",
        "LEVEL",
        "--secret",
        "HUB_TOKEN=hub_HUB_TOKEN",
        "--",
        "uvx",
        "hub"
    ]);
    assert_eq!(args("hub"), hub);
    assert_eq!(servers["hub"]["env"], json!({"LEVEL": "info"}));
    assert_eq!(servers["far"]["url"], "https://far.example.com/mcp");
    let [copy] = &copies(&product)[..] else {
        panic!("{:?}", names(&product, ""));
    };
    assert_eq!(product.read(copy), WRAPPABLE);
    assert_eq!(
        (mode(&file), mode(&product.work.join(copy))),
        (0o644, 0o600)
    );
    let secrets = product.run(&["secret", "list", "--json"]);
    assert!(secrets.stdout.contains("hub_HUB_TOKEN"), "{secrets:?}");

    let again = write(&product, &["claude-code", "--wrap"]);
    assert!(again.stderr.contains("nothing to wrap"), "{again:?}");

    let undone = product.run(&["mcp-config", "claude-code", "--unwrap"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert_eq!(product.read(".mcp.json"), WRAPPABLE);
    assert_eq!(names(&product, ""), [".mcp.json"]);
    let again = product.run(&["mcp-config", "claude-code", "--unwrap"]);
    assert!(again.stderr.contains("no server is wrapped"), "{again:?}");
}

/// Two launches under one name would each be off while the other one is pinned.
#[test]
fn servers_of_two_projects_that_never_ran_get_names_of_their_own() {
    let product = Product::new();
    let name = |file: &str, script: &str| {
        let entry = json!({"mcpServers": {"db": {"command": "node", "args": [script]}}});
        product.file(file, entry.to_string());
        let wrapped = write(&product, &["claude-code", "--file", file, "--wrap"]);
        assert_eq!(wrapped.code, Some(0), "{wrapped:?}");
        let name = json_of(&product, file)["mcpServers"]["db"]["args"][2].clone();
        let is_told = wrapped
            .stderr
            .contains("`db` is the name of another server");
        assert_eq!(is_told, name != "db", "{wrapped:?}");
        name
    };
    assert_eq!(name("a.json", "a.js"), "db");
    assert_eq!(name("b.json", "b.js"), "db-2");
    // The same launch is the same server, in whichever project.
    assert_eq!(name("c.json", "a.js"), "db");
}

/// A name that no server ran under is given back with the entry.
#[test]
fn an_entry_that_is_turned_back_and_edited_keeps_its_name() {
    let product = Product::new();
    for script in ["a.js", "b.js", "c.js"] {
        let entry = json!({"mcpServers": {"db": {"command": "node", "args": [script]}}});
        product.file("a.json", entry.to_string());
        let wrapped = write(&product, &["claude-code", "--file", "a.json", "--wrap"]);
        assert_eq!(wrapped.code, Some(0), "{wrapped:?}");
        let name = json_of(&product, "a.json")["mcpServers"]["db"]["args"][2].clone();
        assert_eq!(name, "db", "{script}");
        let undone = product.run(&["mcp-config", "claude-code", "--file", "a.json", "--unwrap"]);
        assert_eq!(undone.code, Some(0), "{undone:?}");
    }
}

#[test]
fn a_wrapped_file_that_was_edited_keeps_the_edits() {
    let product = Product::new();
    product.file(".mcp.json", WRAPPABLE);
    assert_eq!(write(&product, &["claude-code", "--wrap"]).code, Some(0));
    let later = product.read(".mcp.json").replace(
        "\"far\": {",
        "\"later\": { \"command\": \"later\" },\n    \"far\": {",
    );
    product.file(".mcp.json", &later);
    // Wrapped a second time, with a copy of its own.
    assert_eq!(write(&product, &["claude-code", "--wrap"]).code, Some(0));
    assert_eq!(copies(&product).len(), 2);
    let edited = product.read(".mcp.json").replace("\"info\"", "\"debug\"");
    product.file(".mcp.json", &edited);

    let undone = product.run(&["mcp-config", "claude-code", "--unwrap"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    let mut expected: Value = serde_json::from_str(WRAPPABLE).unwrap();
    expected["mcpServers"]["hub"]["env"]["LEVEL"] = "debug".into();
    expected["mcpServers"]["later"] = json!({"command": "later", "args": []});
    let mut found = json_of(&product, ".mcp.json");
    found["mcpServers"]["later"]["args"] = json!([]);
    assert_eq!(found, expected);
    // The entry nobody touched is spelled as it was.
    let files =
        "    \"files\": { \"command\": \"npx\", \"args\": [\"-y\", \"server-files\", \".\"] },";
    assert!(
        product.read(".mcp.json").contains(files),
        "{}",
        product.read(".mcp.json")
    );
    assert_eq!(product.read(".mcp.json.bak"), edited);
}

#[test]
fn every_clients_file_is_wrapped_and_unwrapped() {
    let json = |servers: &str| {
        format!(
            "{{ \"{servers}\": {{ \"one\": {{ \"command\": \"one\", \"args\": [ \"a\" ] }} }} }}\n"
        )
    };
    let toml = "# mine\n[mcp_servers.one]\ncommand = 'one' # runs\nargs = [ \"a\" ]\n".to_owned();
    for (client, text) in [
        ("claude-code", json("mcpServers")),
        ("claude-desktop", json("mcpServers")),
        ("codex", toml),
        ("cursor", json("mcpServers")),
        ("vscode", json("servers")),
        ("zed", json("context_servers")),
        ("gemini", json("mcpServers")),
    ] {
        let product = Product::new();
        product.file("list", &text);
        let run = |words: &[&str]| {
            let ran = product.run(&[&["mcp-config", client, "--file", "list"], words].concat());
            assert_eq!(ran.code, Some(0), "{client}: {ran:?}");
        };
        run(&["--wrap", "--write"]);
        let wrapped = product.read("list");
        let is_rooted = wrapped.contains("${workspaceFolder}");
        assert_eq!(is_rooted, client == "cursor", "{client}: {wrapped}");
        assert!(wrapped.contains("\"wrap\""), "{client}: {wrapped}");
        run(&["--unwrap"]);
        assert_eq!(product.read("list"), text, "{client}");
    }
}

#[test]
fn a_mark_of_the_byte_order_stays_and_the_way_back_names_the_file() {
    let text = "\u{feff}{\r\n  \"mcpServers\": {\"one\": {\"command\": \"one\"}}\r\n}\r\n";
    let product = Product::new();
    product.file("my list", text);
    let file = ["cursor", "--file", "my list"];
    let wrapped = write(&product, &[file.as_slice(), &["--wrap"]].concat());
    assert_eq!(wrapped.code, Some(0), "{wrapped:?}");
    let path = product.work.join("my list");
    let way_back = format!("mcp-config cursor --file '{}' --unwrap", path.display());
    assert!(wrapped.stderr.contains(&way_back), "{wrapped:?}");
    let changed = product.read("my list");
    assert!(
        changed.starts_with("\u{feff}{\r\n") && changed.contains("wrap"),
        "{changed:?}"
    );
    let undone = product.run(&["mcp-config", "cursor", "--file", "my list", "--unwrap"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert_eq!(product.read("my list"), text);

    let missing = product.run(&["mcp-config", "cursor", "--wrap"]);
    assert!(missing.stderr.contains("does not exist"), "{missing:?}");
}

/// Entries are recognised by the program's name: under another one, they would be wrapped again, and never unwrapped.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "it starts the program under another name"
)]
fn a_program_of_another_name_wraps_nothing() {
    let product = Product::new();
    product.file(
        ".mcp.json",
        r#"{"mcpServers": {"a": {"command": "node", "args": ["a.js"]}}}"#,
    );
    let before = product.read(".mcp.json");
    let mut command = product.command(&["mcp-config", "claude-code", "--wrap", "--write"]);
    let program = std::path::PathBuf::from(command.get_program());
    let place = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
    let renamed = place.path().join("host");
    fs::hard_link(&program, &renamed).unwrap();
    let mut other = std::process::Command::new(&renamed);
    other
        .args(command.get_args())
        .current_dir(&product.work)
        .env_clear()
        .env("HOME", &product.home);
    let ran = Ran::from(other.output().unwrap());
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("start it as `zeph-host`"), "{ran:?}");
    assert_eq!(product.read(".mcp.json"), before);
    assert!(command.output().unwrap().status.success());
}
