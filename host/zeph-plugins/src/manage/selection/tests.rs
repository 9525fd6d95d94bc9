use crate::manage::tests::{WANTS, World, manifest, plugin};

use super::{GrantSelection, RequestedItem, SelectionContext, all, select};

/// `--dir ~/notes:read` and the like.
fn asked(typed: &str) -> Result<RequestedItem, String> {
    let (flag, value) = typed.split_once(' ').unwrap();
    Ok(match flag {
        "--dir" => RequestedItem::directory(value),
        "--host" => RequestedItem::host(value).map_err(|error| error.to_string())?,
        "--program" => RequestedItem::Program(value.to_owned()),
        "--variable" => RequestedItem::Variable(value.to_owned()),
        "--embedder" => RequestedItem::Embedder(value.to_owned()),
        "--tool" => RequestedItem::Tool(value.to_owned()),
        _ => RequestedItem::limit(value).map_err(|error| error.to_string())?,
    })
}

/// What is selected, and the words of its note; or words of the refusal.
fn check(wants: &str, typed: &str, expect: Result<(&str, Option<&str>), &str>) {
    let world = World::new();
    let manifest = manifest(wants);
    let plugin = plugin();
    let wanted = SelectionContext {
        plugin: &plugin,
        manifest: &manifest,
        config: &world.config,
        base: world.base(),
    };
    let selected = asked(typed).and_then(|asked| {
        select(&[asked], wanted).map_err(|error| format!("{error} {:?}", error.hints()))
    });
    match (selected, expect) {
        (
            Ok(GrantSelection {
                capabilities,
                notes,
            }),
            Ok((capability, words)),
        ) => {
            assert_eq!(capabilities, [world.capability(capability)], "{typed}");
            match (notes.as_slice(), words) {
                ([], None) => {}
                ([note], Some(words)) => assert!(note.contains(words), "{typed}: {note}"),
                (notes, words) => panic!("{typed}: {notes:?}, expected {words:?}"),
            }
        }
        (Err(error), Err(words)) => assert!(error.contains(words), "{typed}: {error}"),
        (selected, expect) => panic!("{typed}: {selected:?}, expected {expect:?}"),
    }
}

#[test]
fn embedders_and_tools_are_granted_by_their_names() {
    let wants = "[[embedder]]\nname = \"*\"\nreason = \"r\"\n[[tool]]\nname = \"code/find.all\"\nreason = \"r\"\n";
    for (typed, expect) in [
        ("--embedder local", Ok(("embedder local", None))),
        ("--embedder *", Err("name the one to grant")),
        ("--tool code/find.all", Ok(("tool code/find.all", None))),
        ("--tool code/other", Err("does not request tool code/other")),
        ("--tool code", Err("a tool is `SERVER/TOOL`")),
        ("--tool *", Err("name the one to grant")),
    ] {
        check(wants, typed, expect);
    }
    check(
        WANTS,
        "--embedder local",
        Err("does not request embedder local"),
    );
}

#[test]
fn only_what_is_wanted_can_be_granted() {
    let outside = Some("`tools.file.allowed_paths`");
    for (typed, expect) in [
        (
            "--dir ~/notes",
            Ok(("directory HOME/notes:read+write", outside)),
        ),
        (
            "--dir ../notes/deep:read",
            Ok(("directory HOME/notes/deep:read", outside)),
        ),
        (
            "--dir ~/notes:read+create",
            Err("does not request directory"),
        ),
        ("--dir ~/notes:raed", Err("`raed` is not a right")),
        (
            "--dir ~/notes/../work",
            Err("it requests directory ~/notes:read+write"),
        ),
        ("--dir ~", Err("does not request")),
        ("--dir .", Err("does not request")),
        ("--dir ~/nowhere", Err("cannot be used")),
        ("--host api.example.com", Ok(("host api.example.com", None))),
        (
            "--host api.example.com:GET",
            Ok(("host api.example.com:GET", None)),
        ),
        (
            "--host http://api.example.com",
            Err("does not request host http://api.example.com"),
        ),
        (
            "--host example.com",
            Err("does not request host example.com"),
        ),
        ("--program cargo", Ok(("program cargo", None))),
        ("--program sh", Err("it requests program cargo")),
        (
            "--program cargo check *",
            Ok(("program cargo check *", None)),
        ),
        ("--program /bin/cargo", Err("bare name")),
        ("--variable LANG", Ok(("variable LANG", None))),
        ("--variable HOME", Err("does not request")),
        (
            "--limit memory_bytes",
            Ok(("limit memory_bytes=1073741824", None)),
        ),
        (
            "--limit memory_bytes=1073741824",
            Ok(("limit memory_bytes=1073741824", None)),
        ),
        (
            "--limit memory_bytes=1000000",
            Ok(("limit memory_bytes=1000000", Some("changes nothing"))),
        ),
        ("--limit memory_bytes=1073741825", Err("does not request")),
        ("--limit memory_bytes=0", Err("can be 1 to")),
        ("--limit memory_bytes=much", Err("whole number")),
        (
            "--limit handles=100",
            Err("does not request limit handles=100"),
        ),
        (
            "--limit memory=1",
            Err("there are wall_clock_secs, cpu_secs"),
        ),
    ] {
        check(WANTS, typed, expect);
    }
}

#[test]
fn one_that_wants_the_directories_of_the_host_can_be_granted_any() {
    let wants = "[[directory]]\npath = \".\"\nrights = [\"read\"]\nreason = \"r\"\n";
    for (typed, expect) in [
        ("--dir .", Ok(("directory HOME/work:read", None))),
        ("--dir src", Ok(("directory HOME/work/src:read", None))),
        ("--dir ..", Ok(("directory HOME:read", None))),
        (
            "--dir ~/notes",
            Ok(("directory HOME/notes:read", Some("outside"))),
        ),
        ("--dir .:write", Err("does not request")),
    ] {
        check(wants, typed, expect);
    }
}

#[test]
fn one_that_wants_nothing_can_be_granted_nothing() {
    check("", "--dir .", Err("it requests nothing"));
    check("", "--limit handles=1000", Err("it requests nothing"));
}

#[test]
fn no_limit_goes_above_what_the_engine_can_give() {
    let wants = "[[limit]]\nname = \"handles\"\nvalue = 18000000\nreason = \"r\"\n";
    check(wants, "--limit handles=4097", Err("1 to 4096"));
    check(
        wants,
        "--limit handles=4096",
        Ok(("limit handles=4096", None)),
    );
}

#[test]
fn all_of_it_is_what_there_is() {
    let world = World::new();
    let wants = WANTS.to_owned()
        + "[[directory]]\npath = \"/does/not/exist\"\nrights = [\"read\"]\nreason = \"r\"\n"
        + "[[limit]]\nname = \"handles\"\nvalue = 18000000\nreason = \"r\"\n";
    let manifest = manifest(&wants);
    let plugin = plugin();
    let selection = all(SelectionContext {
        plugin: &plugin,
        manifest: &manifest,
        config: &world.config,
        base: world.base(),
    });
    let expect = [
        "directory HOME/notes:read+write",
        "host api.example.com",
        "program cargo",
        "variable LANG",
        "limit memory_bytes=1073741824",
        "limit handles=4096",
    ];
    assert_eq!(
        selection.capabilities,
        expect.map(|text| world.capability(text))
    );
    let notes = selection.notes.join("\n");
    assert!(notes.contains("no directory `/does/not/exist`"), "{notes}");
    assert!(notes.contains("`handles` can be 4096 at most"), "{notes}");
}
