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
    stays(&root.join(below), std::slice::from_ref(&root))
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
        stays(Path::new("src"), &[]),
        Err("it is not an absolute path")
    );
    assert_eq!(
        stays(Path::new("/tmp/x"), &[]),
        Err("what is there ends with the command")
    );
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
