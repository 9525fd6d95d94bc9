//! Order, kinds and counts.

use serde_json::{Value, json};

use crate::fixture::{Fixture, args};

fn told(fixture: &Fixture, arguments: Value) -> String {
    fixture.told(super::run(&fixture.area, &args(arguments)))
}

#[cfg(unix)]
#[test]
fn directories_then_files_then_links() {
    let fixture = Fixture::new(&[("b", "12345"), (".a", ""), ("z/inner", ""), ("y/", "")]);
    fixture.link("z", "c");
    assert_eq!(
        told(&fixture, json!({})),
        "[dir]  y\n[dir]  z\n[file] .a (0 bytes)\n[file] b (5 bytes)\n[symlink] c"
    );
    assert_eq!(told(&fixture, json!({"path": "y"})), "Empty directory: y");
    assert_eq!(
        told(&fixture, json!({"path": "b"})),
        "permanent: `b` is not a directory; `read` shows a file"
    );
    assert_eq!(
        told(&fixture, json!({"path": "zz"})),
        "permanent: `zz` does not exist; did you mean `z`?"
    );
}

#[test]
fn large_directories_are_cut_and_counted() {
    let names: Vec<String> = (0..1_200).map(|number| format!("{number:04}")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    let fixture = Fixture::new(&files);
    let text = told(&fixture, json!({}));
    assert!(
        text.ends_with("[file] 0999 (0 bytes)\n... and 200 more (showing first 1,000 of 1,200)")
    );
}
