//! Where the next command starts.

use std::os::unix::fs::symlink;

use super::*;

/// A root with a link to `target` in it; what a claim of `root/below` comes to.
fn claim(target: &Path, below: &str) -> Result<(), &'static str> {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("src")).unwrap();
    std::fs::write(root.join("file"), "").unwrap();
    symlink(target, root.join("link")).unwrap();
    stays(&root.join(below), None, std::slice::from_ref(&root))
}

#[test]
fn a_directory_of_a_root_stays_while_it_is_there() {
    let outside = Path::new("/nowhere");
    assert_eq!(claim(outside, "src"), Ok(()));
    assert_eq!(claim(outside, "gone"), Err("it does not exist any more"));
    assert_eq!(
        claim(outside, "gone/more"),
        Err("it does not exist any more")
    );
    assert_eq!(claim(outside, "file"), Err("it does not exist any more"));
    assert_eq!(
        stays(Path::new("src"), None, &[]),
        Err("it is not an absolute path")
    );
}

#[test]
fn what_is_made_anew_for_every_command_does_not_stay() {
    let home = Some(Path::new("/home/me"));
    let work = [PathBuf::from("/home/me/work")];
    for (directory, roots, expect) in [
        ("/tmp", &[][..], false),
        ("/tmp/x", &[], false),
        ("/var/tmp", &[], false),
        ("/dev/shm", &[], false),
        ("/home/me", &[], false),
        ("/home/me", &work, false),
        // A toolchain, if there is one; the next shell sees.
        ("/home/me/.cargo", &work, true),
        ("/proc", &[], true),
        ("/usr/share", &[], true),
    ] {
        let stays = stays(Path::new(directory), home, roots);
        assert_eq!(stays.is_ok(), expect, "{directory}: {stays:?}");
    }
    // Where it is given, it is the machine's.
    let tmp = [PathBuf::from("/tmp")];
    assert_eq!(stays(Path::new("/tmp"), home, &tmp), Ok(()));
}

#[test]
fn no_claim_tells_what_exists_outside_of_the_roots() {
    let outside = tempfile::tempdir().unwrap();
    let outside = outside.path().canonicalize().unwrap();
    std::fs::create_dir(outside.join("there")).unwrap();
    for below in [
        "link/there",
        "link/missing",
        "link",
        "link/there/../missing",
    ] {
        assert_eq!(claim(&outside, below), Ok(()), "{below}");
    }
    let name = outside.file_name().unwrap().to_str().unwrap();
    for below in [format!("../{name}/there"), "../missing".to_owned()] {
        assert_eq!(claim(Path::new("src"), &below), Ok(()), "{below}");
    }
}

/// The names a command left for the next one after it changed `PATH` as it is here.
fn carried(path: &str) -> Vec<String> {
    let state = |path: &str| format!("/work\n\0declare -x A=\"1\"\n{path}\0");
    let before = state("declare -x PATH=\"/usr/bin\"\n");
    let text = format!("{before}0\0{}\0", state(path));
    let record = TurnRecord::parse(text.as_bytes()).unwrap();
    let context = TurnContext {
        turn_id: "turn".to_owned(),
        goal_id: None,
        skill_name: None,
        timestamp_ms: 0,
    };
    let mut turn = Turn::new(context, PathBuf::from("/work"));
    turn.take_over(Path::new("/work"), &record, &[]);
    turn.variables.into_keys().collect()
}

#[test]
fn a_search_path_that_leads_to_the_directory_of_the_shell_does_not_carry_on() {
    for path in [
        "",
        "declare -x PATH=\"\"\n",
        "declare -x PATH=\"bin:/usr/bin\"\n",
        "declare -x PATH=\"/usr/bin:\"\n",
        "declare -x PATH=\".:/usr/bin\"\n",
    ] {
        assert!(carried(path).is_empty(), "{path}");
    }
    assert_eq!(
        carried("declare -x PATH=\"/work/.venv/bin:/usr/bin\"\n"),
        ["PATH"]
    );
}

#[test]
fn a_lost_state_matters_where_words_of_the_command_change_it() {
    for (command, expect) in [
        ("cd src; exec true", true),
        ("trap 'rm x' EXIT;export A=1", true),
        (". ./env", true),
        ("(cd src)", true),
        ("exec make test", false),
        ("trap 'rm -f x' EXIT; cargo build", false),
        ("cdrecord x", false),
    ] {
        assert_eq!(super::may_change_state(command), expect, "{command}");
    }
}
