use super::Manifest;

fn check(text: &str, expect: Result<&[&str], &str>) {
    let got = Manifest::parse(text);
    match (got, expect) {
        (Ok(manifest), Ok(expect)) => {
            let got: Vec<_> = manifest
                .wants
                .iter()
                .map(|want| want.capability.to_string())
                .collect();
            assert_eq!(got, expect, "{text}");
        }
        (Err(error), Err(expect)) => assert!(
            error.to_string().contains(expect),
            "{text}\n{error}\ndoes not contain {expect}"
        ),
        (got, expect) => panic!("{text}\n{got:?} instead of {expect:?}"),
    }
}

#[test]
fn what_a_manifest_can_say() {
    check("", Ok(&[]));
    check("# nothing", Ok(&[]));
    check(
        r#"
        [[directory]]
        path = "."
        rights = ["read", "create"]
        reason = "r"
        [[directory]]
        path = "~/notes"
        rights = ["read"]
        reason = "r"
        [[host]]
        name = "*.example.com:8443"
        reason = "r"
        [[program]]
        name = "cargo"
        reason = "r"
        [[variable]]
        name = "LANG"
        reason = "r"
        [[limit]]
        name = "memory_bytes"
        value = 536870912
        reason = "r"
        "#,
        Ok(&[
            "directory .:read+create",
            "directory ~/notes:read",
            "host *.example.com:8443",
            "program cargo",
            "variable LANG",
            "limit memory_bytes=536870912",
        ]),
    );
}

#[test]
fn what_a_manifest_cannot_say() {
    let named = |table: &str, name: &str| format!("[[{table}]]\nname = \"{name}\"\nreason = \"r\"");
    let directory = |path: &str, rights: &str| {
        format!("[[directory]]\npath = \"{path}\"\nrights = [{rights}]\nreason = \"r\"")
    };
    for (text, problem) in [
        ("[[host]".to_owned(), "line 1"),
        ("\n\n[[hosts]]\n".to_owned(), "line 3"),
        (
            "[[host]]\nname = \"a.b\"".to_owned(),
            "missing field `reason`",
        ),
        (
            "[[host]]\nname = \"a.b\"\nreason = \" \"".to_owned(),
            "reason",
        ),
        (
            "[[host]]\nname = \"a.b\"\nreason = \"x\\ny\"".to_owned(),
            "reason",
        ),
        (
            "[[host]]\nname = \"a.b\"\nreason = \"x\\u202e\"".to_owned(),
            "reason",
        ),
        (named("host", "http://a.b"), "a host is"),
        (named("host", "a.b:0"), "a host is"),
        (named("host", "*.co.uk"), "a host is"),
        (named("host", "*.10.0.0.1"), "a host is"),
        (named("host", "a.*.b"), "a host is"),
        (
            "[[host]]\nname = \"a.b\"\nmethods = [\"TRACE\"]\nreason = \"r\"".to_owned(),
            "method",
        ),
        (
            "[[host]]\nname = \"a.b\"\nmethods = []\nreason = \"r\"".to_owned(),
            "method",
        ),
        (named("program", "/bin/sh"), "bare name"),
        (named("program", ""), "bare name"),
        (named("program", "--flag"), "bare name"),
        (named("variable", "A=B"), "a variable is"),
        (named("embedder", ""), "an embedder is"),
        (named("tool", "search"), "a tool is"),
        (named("tool", "/search"), "a tool is"),
        (directory("notes", "\"read\""), "a directory is"),
        (directory("../x", "\"read\""), "a directory is"),
        (directory("/a/../b", "\"read\""), "a directory is"),
        (directory("/a", ""), "names no right"),
        (directory("/a", "\"execute\""), "line 3"),
        (
            directory("/a", "\"read\"") + "\n" + &directory("/a", "\"write\""),
            "wanted twice",
        ),
        (
            "[[limit]]\nname = \"memory_bytes\"\nvalue = 0\nreason = \"r\"".to_owned(),
            "at least 1",
        ),
        (
            "[[limit]]\nname = \"patience\"\nvalue = 1\nreason = \"r\"".to_owned(),
            "line 2",
        ),
        ("#".repeat(70_000), "the limit is"),
    ] {
        check(&text, Err(problem));
    }
    let many: String = (0..65)
        .map(|n| named("variable", &format!("V{n}")) + "\n")
        .collect();
    check(&many, Err("the limit is 64"));
}
