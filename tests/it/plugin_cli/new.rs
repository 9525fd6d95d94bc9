//! `plugin new`.

use crate::product::Product;

#[test]
fn a_project_begins_in_each_language() {
    let product = Product::new();
    for language in ["rust", "js", "python", "c"] {
        let name = format!("my-{language}");
        let ran = product.plugin(&["new", "--lang", language, &name]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.starts_with(&format!("cd {name}\n")), "{ran:?}");
        assert!(ran.stdout.contains("zeph-host plugin add"), "{ran:?}");
        assert!(
            product.work.join(&name).join("plugin.toml").is_file(),
            "{language}"
        );
        product.refuses(&["new", "--lang", language, &name], 2, &["there already"]);
    }
    let json = product.plugin_json(&["new", "--lang", "rust", "other", "--dir", "my-rust"]);
    let folder = product.work.join("my-rust/other");
    assert_eq!(json["folder"], folder.to_str().unwrap(), "{json}");
    for file in json["files"].as_array().unwrap() {
        assert!(folder.join(file.as_str().unwrap()).is_file(), "{file}");
    }
    product.refuses(&["new", "--lang", "cobol", "x"], 2, &["cobol"]);
    product.refuses(
        &["new", "--lang", "rust", "No"],
        2,
        &["not a valid plugin name"],
    );
    product.refuses(&["new", "--lang", "rust", "file"], 2, &["`file`"]);
}
