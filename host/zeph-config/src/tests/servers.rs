//! `[mcp.servers.NAME]`: what the program works with.

use std::time::Duration;

use zeph_core::network::Passage;

use super::World;
use crate::servers::{ServerConfig, ServerTransport, ServerValue, TrustLevel};

fn server(text: &str) -> ServerConfig {
    let world = World::new().directory("home/lib").user(text);
    let mut servers = world.config().mcp_servers;
    assert_eq!(servers.len(), 1);
    servers.pop_first().unwrap().1
}

#[test]
fn what_is_not_set_is_denied() {
    let server = server("[mcp]\ntool_timeout = 7\n[mcp.servers.x]\ncommand = \"run\"");
    assert_eq!(server.trust, TrustLevel::Untrusted);
    assert_eq!(server.tool_timeout, Duration::from_secs(7));
    assert_eq!(server.calls_per_minute_max, None);
    assert!(!server.disabled && server.offers("anything"));
    let ServerTransport::Command(command) = server.transport else {
        panic!("it is a program");
    };
    assert!(command.read.is_empty() && command.write.is_empty() && command.hosts.is_empty());
    assert!(command.environment.is_empty() && !command.install_scripts);
    assert_eq!(command.directory, None);
}

#[test]
fn every_key_of_a_program() {
    let server = server(
        "[mcp.servers.x]\ncommand = \"~/bin/run\"\nargs = [\"a\"]\ncwd = \"~/lib\"\nallow_read = [\"~/lib\"]\n\
         env = { A = \"1\", B = { secret = \"S\", prefix = \"p \" } }\nhosts = [\"a.example.org\", \"b.example.org:8443\"]\n\
         secrets = [\"S=a.example.org:x-key\", \"T=a.example.org:x-other:GET\"]\ntool_timeout = 5\n\
         rate_limit = { max_calls_per_minute = 9 }\ninstall_scripts = true",
    );
    assert_eq!(server.calls_per_minute_max.map(u32::from), Some(9));
    assert_eq!(server.tool_timeout, Duration::from_secs(5));
    let ServerTransport::Command(command) = server.transport else {
        panic!("it is a program");
    };
    assert!(
        command.program.ends_with("/home/bin/run"),
        "{}",
        command.program
    );
    assert!(command.directory.unwrap().ends_with("home/lib"));
    assert_eq!(command.environment["A"], ServerValue::Text("1".to_owned()));
    let secret = ServerValue::Secret {
        name: "S".to_owned(),
        prefix: "p ".to_owned(),
    };
    assert_eq!(command.environment["B"], secret);
    assert!(command.install_scripts);
    let [inspected, plain @ ..] = command.hosts.as_slice() else {
        panic!("it has hosts");
    };
    let Passage::Inspected(inspection) = &inspected.passage else {
        panic!("secrets are added where requests are read");
    };
    assert_eq!(inspection.secrets.len(), 2);
    assert_eq!(plain.len(), 2);
}

#[test]
fn what_is_allowed_through_a_link_keeps_its_name() {
    let world = World::new().symlink("home/link", "home/repo").user(
        "[mcp.servers.x]\ncommand = \"x\"\nallow_read = [\"~/link\"]\nallow_write = [\"~/repo\"]\n",
    );
    let config = world.config();
    let ServerTransport::Command(command) = &config.mcp_servers["x"].transport else {
        panic!("it is a program");
    };
    assert_eq!(command.read, [world.repo()]);
    assert_eq!(
        command.spellings,
        [(world.home().join("link"), world.repo())]
    );
}

#[test]
fn which_tools_are_offered() {
    let lists = "allowed_tools = [\"a\", \"b\", \"c\"]\ndenied_tools = [\"b\"]\ntools = { c = { enabled = false } }";
    for (more, offered) in [
        ("", vec!["a", "b", "c", "d"]),
        (lists, vec!["a"]),
        ("trust_level = \"sandboxed\"", vec![]),
        (
            "trust_level = \"sandboxed\"\nallowed_tools = [\"d\"]",
            vec!["d"],
        ),
    ] {
        let server = server(&format!("[mcp.servers.x]\ncommand = \"run\"\n{more}"));
        let found: Vec<&str> = ["a", "b", "c", "d"]
            .into_iter()
            .filter(|tool| server.offers(tool))
            .collect();
        assert_eq!(found, offered, "{more}");
    }
}

#[test]
fn a_chosen_name_is_that_of_one_tool() {
    let check = |name: &str, problem: Option<&str>| {
        let world = World::new().user(format!(
            "[mcp.servers.git]\ncommand = \"x\"\n[mcp.servers.git.tools.a]\nname = {name:?}\n\
             [mcp.servers.git_hub]\ncommand = \"x\"\n[mcp.servers.git_hub.tools.b]\nname = \"say\"\n"
        ));
        match problem {
            None => assert_eq!(world.config().mcp_servers.len(), 2, "{name}"),
            Some(problem) => {
                let problems = world.errors();
                assert!(problems.contains(problem), "{name}: {problems}");
            }
        }
    };
    check("tell", None);
    check("mcp_git_tell", None);
    check("Say", Some("`b.name`: another tool has the same name"));
    check(
        "mcp_git_hub_search",
        Some("`a.name`: a name that begins with `mcp_`"),
    );
    check(
        "mcp_other_search",
        Some("`a.name`: a name that begins with `mcp_`"),
    );
}

/// What is said of one server is said as a whole: no layer adds to the table of another.
#[test]
fn a_flag_sets_a_server_as_a_whole() {
    let world = World::new()
        .user("[mcp.servers.x]\ncommand = \"run\"\nhosts = [\"example.org\"]")
        .set("mcp.servers.x={ command = \"other\" }");
    let server = world.config().mcp_servers.pop_first().unwrap().1;
    let ServerTransport::Command(command) = server.transport else {
        panic!("it is a program");
    };
    assert_eq!(command.program, "other");
    assert!(command.hosts.is_empty());
}

#[test]
fn urls_that_are_taken() {
    for (url, is_fine) in [
        ("https://example.org/mcp", true),
        ("https://10.0.0.1/mcp", true),
        ("http://127.0.0.1:3000/mcp", true),
        ("http://localhost/mcp", true),
        ("http://[::1]:3000/", true),
        ("http://git.corp:8080/mcp", true),
        ("http://git.corp/mcp", false),
        ("http://example.org/mcp", false),
        ("http://localhost.example.org/", false),
        ("http://localhost:x@example.org/", false),
        ("http://127.0.0.1@example.org/", false),
        ("https://user@example.org/", false),
        ("ftp://example.org/", false),
        ("https://", false),
        ("https:///mcp", false),
        ("https://exa mple.org/", false),
        ("HTTPS//example.org", false),
    ] {
        let private =
            "[[tools.egress.private]]\nhost = \"git.corp\"\nports = [8080]\nplain_http = true\n";
        let loaded = World::new()
            .user(format!("{private}[mcp.servers.x]\nurl = \"{url}\""))
            .load();
        assert_eq!(loaded.is_ok(), is_fine, "{url}: {loaded:?}");
    }
}
