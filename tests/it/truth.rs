//! What help and answers say is so: the keys of JSON, the exit codes of what is refused, the words that were typed.

use serde_json::{Value, json};

use crate::product::{Product, Ran};

fn configured(config: &str) -> Product {
    let product = Product::new();
    product.user_config(config);
    product
}

/// The only document on standard output.
fn document(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// Asserts that every key of `value` stands in the help of `command`.
#[track_caller]
fn keys_are_told(product: &Product, command: &[&str], value: &Value) {
    let help = product.run(&[command, &["--help"]].concat()).stdout;
    for key in value.as_object().unwrap().keys() {
        assert!(help.contains(&format!("\"{key}\"")), "{key}: {value:#}");
    }
}

#[test]
fn help_of_explain_tells_the_keys_of_its_answers() {
    let product = configured(
        "[[tools.permissions.bash]]\npattern = \"rm *\"\naction = \"deny\"\nmode = \"observe\"\n\
         [[tools.permissions.bash]]\npattern = \"ls\"\naction = \"deny\"\n",
    );
    product.file("a.txt", "a");
    let calls: [(&[&str], &str, i32); 5] = [
        (&["read", "path=a.txt"], "allow", 0),
        (&["bash", "command=rm a.txt"], "ask", 5),
        (&["bash", "command=ls"], "deny", 4),
        (&["nonsense"], "invalid", 2),
        (&["read", "--args", "{}"], "invalid", 2),
    ];
    for (call, decision, code) in calls {
        let ran = product.run(&[&["explain"], call, &["--json"]].concat());
        assert_eq!(ran.code, Some(code), "{ran:?}");
        let explained = document(&ran);
        assert_eq!(explained["decision"], decision, "{explained:#}");
        keys_are_told(&product, &["explain"], &explained);
        for step in explained["trace"].as_array().into_iter().flatten() {
            keys_are_told(&product, &["explain"], step);
        }
    }
}

#[test]
fn help_of_approve_tells_the_keys_of_its_answers() {
    let product = Product::new();
    let write = json!({"tool": "write", "params": {"path": "a", "content": "b"}});
    product.answers(&[], format!("{write}\n"));
    let listed = document(&product.run(&["approve", "--json"]));
    keys_are_told(&product, &["approve"], &listed);
    let rule = ["approve", "--last", "--rule", "--write", "--json"];
    let refused = product.run(&rule);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    let refused = document(&refused);
    assert_eq!(refused["written"], Value::Null, "{refused:#}");
    keys_are_told(&product, &["approve"], &refused);
    let approved = document(&product.run(&["approve", "--last", "--yes", "--json"]));
    keys_are_told(&product, &["approve"], &approved);
}

#[test]
fn policy_show_follows_the_checks_and_omits_no_rule() {
    let product = configured(
        "tools.max_tool_calls_per_session = 7\n\
         [tools.scoped]\nenabled = true\ndenied_tools = [\"delete_path\"]\n\
         [[tools.scoped.constraints]]\ntool = \"write\"\ndeny_patterns = [\"secret\"]\n\
         [tools.scope]\nenabled = true\nrequire_capability = true\n\
         [tools.policy]\nenabled = true\ndefault_effect = \"allow\"\n[[tools.policy.rules]]\neffect = \"deny\"\ntool = \"edit\"\n\
         [[tools.permissions.bash]]\npattern = \"ls *\"\naction = \"allow\"\n\
         [tools.governance]\nblocked_sequences = [[\"read\", \".env\", \"curl\"]]\n\
         [tools.dependencies]\nenabled = true\n[tools.dependencies.rules.edit]\nrequires = [\"read\"]\n",
    );
    let shown = product.run(&["policy", "show"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let lines = [
        "deny  edit before read succeeded",
        "deny  delete_path",
        "deny  write with secret",
        "tool = edit",
        "allow ls *",
        "BUILT IN",
        "deny    read .env curl",
        "FLOW",
        "deny  more than 7 calls",
        "tools.scope.require_capability",
    ];
    let places = lines.map(|line| {
        let place = shown.stdout.find(line);
        place.unwrap_or_else(|| panic!("{line}: {}", shown.stdout))
    });
    assert!(places.is_sorted(), "{places:?}: {}", shown.stdout);

    let shown = document(&product.run(&["policy", "show", "--json"]));
    keys_are_told(&product, &["policy"], &shown);
    for key in ["dependencies", "scoped", "scope", "sequences", "flow"] {
        assert!(!shown[key].is_null(), "{key}: {shown:#}");
    }
    // A denial by a constraint can be approved, and both say so.
    let constraint = &shown["scoped"]["constraints"][0];
    assert_eq!(constraint["tool"], "write", "{constraint}");
    let call = ["explain", "write", "path=a", "content=secret", "--json"];
    let explained = document(&product.run(&call));
    assert_eq!(explained["decision"], "deny", "{explained:#}");
    assert_eq!(explained["can_be_approved"], true, "{explained:#}");
}

#[test]
fn a_reader_of_json_is_told_of_a_refusal() {
    let product = Product::new();
    product.file("a.txt", "a");
    let unread = ["call", "read", "path=a.txt", "foo=1", "--output", "json"];
    let unread = product.run(&unread);
    assert_eq!(unread.code, Some(2), "{unread:?}");
    let answer = document(&unread);
    assert_eq!(answer["status"], "failed", "{answer:#}");
    assert_eq!(answer["error"]["category"], "invalid_parameters");

    product.drop_in("x", crate::guest::HOSTILE);
    let refused = product.run(&["plugin", "remove", "x", "--json"]);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    assert_eq!(document(&refused)["removed"], false, "{refused:?}");
    let removed = product.run(&["plugin", "remove", "x", "--yes", "--json"]);
    assert_eq!(document(&removed)["removed"], true, "{removed:?}");
}

/// The text does not speak of an option that nobody typed, and the mistake is one of the command line.
#[test]
fn wrap_names_what_was_typed() {
    let product = Product::new();
    for (option, value) in [("--host", "a b"), ("--secret", "A=B=C")] {
        let ran = product.run(&["wrap", option, value, "--", "cat"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(&format!("`{option}`: ")), "{ran:?}");
        assert!(!ran.stderr.contains("--set"), "{ran:?}");
    }
}

#[test]
fn a_login_to_a_server_that_is_not_there_cannot_be_forgotten() {
    let product = Product::new();
    let ran = product.run(&["mcp", "logout", "nosuch"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("no MCP server is named"), "{ran:?}");
    // Nobody wants to add a server to forget its login.
    assert!(!ran.stderr.contains("mcp.servers.NAME"), "{ran:?}");
}

/// What an agent starts on every event must not stop it, however its line is wrong.
#[test]
fn a_wrong_line_of_a_hook_is_no_veto() {
    let product = Product::new();
    for words in [
        ["--no-projet", "hook", "claude", "pre-tool-use"],
        ["hook", "claude", "pre-tool-use", "--no-such-option"],
    ] {
        let ran = product.run(&words);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!ran.stderr.is_empty(), "{ran:?}");
    }
}

#[test]
fn options_about_a_pending_call_need_one() {
    let product = Product::new();
    for line in [
        "--deny",
        "--always --yes",
        "--rule --write",
        "--list --deny",
    ] {
        let words: Vec<&str> = std::iter::once("approve").chain(line.split(' ')).collect();
        let ran = product.run(&words);
        assert_eq!(ran.code, Some(2), "{line}: {ran:?}");
    }
}
