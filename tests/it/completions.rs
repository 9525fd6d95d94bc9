//! What a shell offers when its user presses the tab key, asked through the script that the program prints for it.

use std::os::unix::fs::symlink;
use std::process::Command;

use crate::product::Product;
use crate::terminal::Prompt;

/// Loads the script as a user's shell does, and asks for the last of some words: the line, then its words as bash cuts them, then what is
/// to be completed.
const BASH: &str = r#"
set -f
eval "$(zeph-host completions bash)"
COMP_LINE=$1; COMP_POINT=${#COMP_LINE}; last=$2; shift 2
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9
_clap_complete_zeph_host zeph-host "$last" "" 2>/dev/null
printf '%s\n' "${COMPREPLY[@]}"
"#;

/// The shell of a user who finds the program in its path.
#[expect(
    clippy::disallowed_methods,
    reason = "the shell of a person, outside of any jail"
)]
fn bash(product: &Product) -> Command {
    let host = product.command(&[]);
    let bin = product.home.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    drop(symlink(host.get_program(), bin.join("zeph-host")));
    let mut bash = Command::new("bash");
    bash.arg("--norc").current_dir(&product.work).env_clear();
    for (name, value) in host.get_envs() {
        bash.env(name, value.unwrap());
    }
    bash.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    bash
}

/// What bash offers for the last of these words: what would stand in the place of its last piece.
fn offered(product: &Product, words: &[&str]) -> Vec<String> {
    let line = format!("zeph-host {}", words.join(" "));
    let cut = cut(words);
    let last = cut.last().filter(|last| !["=", ":"].contains(last));
    let mut bash = bash(product);
    bash.args(["-c", BASH, "bash", &line]);
    // Without the quote that is still open.
    bash.arg(last.map_or("", |last| last.trim_start_matches('\'')));
    bash.arg("zeph-host").args(&cut);
    let ran = bash.output().unwrap();
    let lines = String::from_utf8(ran.stdout).unwrap();
    lines
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

/// The words as bash cuts them: `=` and `:` are words of their own, outside of quotes.
fn cut<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let pieces = words.iter().flat_map(|word| match word.starts_with('\'') {
        true => vec![*word],
        false => word
            .split_inclusive(['=', ':'])
            .flat_map(|piece| match piece.strip_suffix(['=', ':']) {
                Some(before) => vec![before, &piece[before.len()..]],
                None => vec![piece],
            })
            .filter(|piece| !piece.is_empty())
            .chain(word.is_empty().then_some(""))
            .collect(),
    });
    pieces.collect()
}

#[track_caller]
fn check(product: &Product, words: &[&str], expected: &[&str]) {
    let offered = offered(product, words);
    for name in expected {
        assert!(
            offered.iter().any(|one| one == name),
            "{words:?}: {name}: {offered:?}"
        );
    }
    let start = words.last().unwrap();
    assert!(
        offered.iter().all(|one| one.starts_with(start)),
        "{words:?}: {offered:?}"
    );
}

#[test]
fn tools_plugins_and_languages_are_known() {
    let product = Product::new();
    product.drop_in("mine", &zeph_bundle::standard());
    product.plugin(&["list"]);
    let lock = product.plugins().parent().unwrap().join("zeph.lock");
    let pinned = std::fs::read(&lock).unwrap();
    product.drop_in("unknown", &zeph_bundle::standard());

    check(&product, &["call", "re"], &["read", "read_overflow"]);
    check(&product, &["tools", "show", "g"], &["grep"]);
    check(&product, &["run", "--allow", "wri"], &["write"]);
    check(&product, &["audit", "query", "--tool", "ba"], &["bash"]);
    check(&product, &["plugin", "info", "m"], &["mine"]);
    check(&product, &["plugin", "info", ""], &["mine", "scrape"]);
    check(&product, &["filter", "--", "tru"], &["true"]);
    check(&product, &["wrap", "--name", "x", "--", "tru"], &["true"]);
    check(&product, &["plugin", "disable", ""], &["mine"]);
    check(&product, &["audit", "query", "--plugin", ""], &["mine"]);
    check(
        &product,
        &["plugin", "new", "--lang", ""],
        &["rust", "js", "python", "c"],
    );
    check(&product, &["filters", "show", "cargo-t"], &["cargo-test"]);
    check(
        &product,
        &["mcp-config", "cl"],
        &["claude-code", "claude-desktop"],
    );
    check(
        &product,
        &["audit", "query", "--category", "ti"],
        &["timeout"],
    );
    check(&product, &["pl"], &["plugin"]);

    // Asking changes nothing: no plugin is pinned for it.
    assert_eq!(std::fs::read(&lock).unwrap(), pinned);
}

#[test]
fn what_the_store_holds_is_known() {
    let product = Product::new();
    // There is no store yet, and a completion makes none.
    check(&product, &["conversations", "delete", ""], &[]);
    let refused = product.answers(
        &[],
        "{\"tool\": \"write\", \"params\": {\"path\": \"a\", \"content\": \"b\"}}\n",
    );
    assert_eq!(refused[0]["status"], "refused", "{refused:#?}");
    let pending = product.run(&["approve", "--json"]).stdout;
    let pending: serde_json::Value = serde_json::from_str(&pending).unwrap();
    let request = &pending["requests"][0];
    let (id, conversation) = (&request["id"], &request["conversation"]);
    let (id, conversation) = (id.as_str().unwrap(), conversation.as_str().unwrap());
    check(&product, &["approve", ""], &[id]);
    check(&product, &["conversations", "delete", "0"], &[conversation]);
    check(&product, &["run", "--conversation", "0"], &[conversation]);
    check(&product, &["serve", "--allow", "wri"], &["write"]);
    check(&product, &["acp", "--allow", "gre"], &["grep"]);
    check(&product, &["--roo"], &["--root"]);
    check(&product, &["run", "--res"], &["--resume"]);
}

/// What follows a `=` or a `:` is a word of its own for bash, and takes the place of that piece alone.
#[test]
fn keys_of_tools_and_settings_are_known_and_paths_behind_them() {
    let product = Product::new();
    product.file("notes.txt", "a").file("next/b.txt", "b");
    let table: [(&[&str], &[&str]); 14] = [
        (&["filter", "--", "ls", "no"], &["notes.txt"]),
        (&["filter", "--", "./no"], &["./notes.txt"]),
        (&["run", "@no"], &["@notes.txt"]),
        (&["call", "read", "pa"], &["path="]),
        (&["call", "read", "path="], &[".", "next/", "notes.txt"]),
        (&["call", "read", "path=no"], &["notes.txt"]),
        (&["call", "read", "path=next/"], &["next/b.txt"]),
        (&["explain", "read", "path=no"], &["notes.txt"]),
        (&["run", "--allow", "write:no"], &["notes.txt"]),
        (&["run", "--allow=write:no"], &["notes.txt"]),
        (&["run", "--allow", "'write:no"], &["write:notes.txt"]),
        (&["--set", "limits.cpu_s"], &["limits.cpu_secs="]),
        (&["--set", "tools.scoped.enabled="], &["false", "true"]),
        (&["call", "read", "nosuch="], &[".", "next/", "notes.txt"]),
    ];
    for (words, expected) in table {
        let mut offered = offered(&product, words);
        offered.sort();
        assert_eq!(offered, expected, "{words:?}");
    }
    // A word that was typed with such a letter before is one word.
    check(
        &product,
        &["--set", "limits.cpu_secs=5", "call", "re"],
        &["read"],
    );
}

/// Stands in the place of the program: prints the words that it is run with. The script completes for it, too.
const SHOW: &str = r#"show() { printf 'is %s;' "$@"; echo e''nd.; }
eval "$(zeph-host completions bash)"
complete -o nospace -o bashdefault -F _clap_complete_zeph_host show; echo rea''dy"#;

/// Names are of those who made the files: a shell must not run them, nor read them as anything but one word.
#[test]
fn names_that_a_shell_would_run_are_completed_as_one_word() {
    let product = Product::new();
    let names = [
        "a$(id>PWNED)",
        "b;id",
        "c`id`",
        "d&x",
        "e'f",
        "f*g",
        "g\"h",
        "h i",
        "i\\j",
        "j!k",
        "k|l",
        "l>m",
        "m(n",
        "n{o,p}",
        "o#p",
        "p=q;r",
        "q:r;s",
        "r\n;id",
        "s\x0b;id",
        "t$HOME",
    ];
    for name in names {
        product.file(&format!("in/{name}"), "");
    }
    product.file("in/u;v/w", "");
    let mut bash = bash(&product);
    bash.arg("-i")
        .envs([("PS1", "$ "), ("TERM", "dumb"), ("LC_ALL", "C.UTF-8")]);
    let mut prompt = Prompt::run(bash, Some((400, 40)), "$ ");
    prompt.type_line(SHOW);
    prompt.until("ready");

    let whole = names.iter().filter(|name| !name.contains(char::is_control));
    let mut table: Vec<(String, String)> = whole
        .map(|name| (format!("in/{}\t", &name[..1]), (*name).to_owned()))
        .collect();
    let quoted = [
        ("'in/a\t", "a$(id>PWNED)"),
        ("\"in/b\t", "b;id"),
        // No escape within the quote that is open: nothing is offered.
        ("\"in/a\t\"", "a"),
        ("'in/e\t'", "e"),
        ("in/a\\$\t", "a$(id>PWNED)"),
        ("in/i\\\t", "i\\j"),
        ("in/u\t\t", "u;v/w"),
        ("in/r\t", "r"),
        ("in/s\t", "s"),
    ];
    table.extend(quoted.map(|(typed, name)| (typed.to_owned(), name.to_owned())));
    for (typed, name) in table {
        prompt.type_line(&format!("show call read path={typed}"));
        prompt.until("end.");
        let expected = format!("is call;is read;is path=in/{name};end.");
        let shown = prompt.shown();
        assert!(shown.contains(&expected), "{typed:?}: {shown:?}");
    }
    assert!(!product.work.join("PWNED").exists());
}

/// The words that zsh, fish and others send, answered one candidate a line.
#[test]
fn every_shell_is_answered() {
    let product = Product::new();
    product.file("notes.txt", "a");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = product.run(&["completions", shell]);
        assert_eq!(script.code, Some(0), "{}", script.stderr);
        assert!(
            script.stdout.contains("ZEPH_HOST_COMPLETE"),
            "{}",
            script.stdout
        );
        let mut asked = product.command(&["--", "zeph-host", "call", "gre"]);
        asked
            .env("ZEPH_HOST_COMPLETE", shell)
            .env("_CLAP_COMPLETE_INDEX", "2");
        let answered = asked.output().unwrap();
        let text = String::from_utf8(answered.stdout).unwrap();
        assert!(text.starts_with("grep"), "{shell}: {text}");
        let mut asked = product.command(&["--", "zeph-host", "call", "read", "path=no"]);
        asked
            .env("ZEPH_HOST_COMPLETE", shell)
            .env("_CLAP_COMPLETE_INDEX", "3");
        let answered = asked.output().unwrap();
        let text = String::from_utf8(answered.stdout).unwrap();
        assert!(text.starts_with("path=notes.txt"), "{shell}: {text}");
    }
}
