//! The same text has the same tree in our grammar and in the original.

use std::path::{Path, PathBuf};

use tree_sitter_c2rust::{Language, Node, Parser};
use zeph_plugin_search::outline::Nodes;

use crate::original::PAIRS;

/// What a tree says of one node.
type Told = (u16, (usize, usize), bool, bool, bool);

/// Every node of the tree of a text, a parent before its children.
fn tree(language: &Language, text: &[u8]) -> Vec<Told> {
    let mut parser = Parser::new();
    parser.set_language(language).unwrap();
    let tree = parser.parse(text, None).unwrap();
    let told = |node: Node<'_>| {
        let range = (node.start_byte(), node.end_byte());
        (
            node.kind_id(),
            range,
            node.is_named(),
            node.is_missing(),
            node.has_error(),
        )
    };
    Nodes::of(&tree).map(told).collect()
}

/// Texts that need the scanners, and texts that are broken.
const TEXTS: &[&str] = &[
    "",
    "\u{0}\u{1}x",
    "fn main() { let s = r##\"a\"# b\"##; /* a /* b */ c */ 1.0e3f32; 1..2; 1.max(2); b\"x\\n\" } /// doc\n//! inner\n/**/ /*! x */ /** y */",
    "/* never ends",
    "r#\"never ends",
    "def f(a):\n  if a:\n\treturn f\"{a!r:>{w}} {{x}} \\n\"\n  # c\n\n    # d\n  x = rb'\\'' '''a\n'b''' b'\\N' \\\n + 1\nclass C: pass\n",
    "try:\n  pass\nexcept* E:\n  pass\nasync def g(): await x\n  \n@d\ndef h(): ...",
    "\"\"\"\n''' \" \"\" \\\" \"\"\"\nx = '\\",
    "let a = b\n++c\nlet d = `x ${`y ${z}`} $ \\n`\nfoo(/re/g)\na ? .5 : b?.c\nreturn\n<div a=\"b\">text {x} &amp; <b/>\n more </div>\n<!-- c\n--> d\nif (a) b /* x\n */ c\nin x\ninstanceof y",
    "type F = ({a}: {a: number}) => number\nabstract class A<T> { private x?: T; m(): void\n n(): void }\nconst f = <T,>(a: T) => a ? (b) : c => d\ninterface I { (x): y\n [k: string]: number }",
    "#include <a>\n#define X(y) y ## 1\nauto s = R\"ab(c)a\" )ab\"; auto t = R\"(x)\"; template <class T> struct S : B<T> { S() = default; int operator()(int) const; };\nR\"ab(never ends",
    "package main\nimport \"fmt\"\nfunc (r *R) M(a, b int) (c int, err error) { go func() { <-ch }(); s := `raw\n`; return }\ntype T struct { A int `json:\"a\"` }\n",
    "package a.b; import java.util.*; public class C<T extends X> { int f(int... a) throws E { return a -> a + 1; } record R(int x) {} enum E { A, B { } } String s = \"\"\"\n text \"\"\"; }",
    "naïve = 'übergrößenträger' // 日本語 \u{2028} x\nlet é = 1; λ => μ",
    "}}}} ((((( \" ' ` \\ @ # $ % ^ & * <<< >>>",
];

#[test]
fn trees_are_those_of_the_originals() {
    for pair in PAIRS {
        let (ours, theirs) = ((pair.ours)(), pair.theirs());
        for text in TEXTS {
            // Every other text is broken off in the middle of something.
            for end in (0..text.len()).step_by(7).chain([text.len()]) {
                let text = &text.as_bytes()[..end];
                assert_eq!(
                    tree(&ours, text),
                    tree(&theirs, text),
                    "{}: {:?}",
                    pair.name,
                    String::from_utf8_lossy(text)
                );
            }
        }
    }
}

/// Sources of this repository, each read with every grammar, so that most of it is broken.
#[test]
fn trees_of_sources_are_those_of_the_originals() {
    let mut files = Vec::new();
    for folder in ["src", "tests", "../templates"] {
        collect(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join(folder),
            &mut files,
        );
    }
    assert!(files.len() > 20);
    for file in files {
        let text = std::fs::read(&file).unwrap();
        for pair in PAIRS {
            let are_equal = tree(&(pair.ours)(), &text) == tree(&pair.theirs(), &text);
            assert!(are_equal, "{}: {}", pair.name, file.display());
        }
    }
}

/// The texts in a folder that are not too large: errors take time.
fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
    const MAX: u64 = 12_000;
    let names = folder.read_dir().unwrap();
    let mut names: Vec<PathBuf> = names.map(|name| name.unwrap().path()).collect();
    names.sort();
    for path in names {
        let kind = path.metadata().unwrap();
        if kind.is_dir() {
            collect(&path, into);
        } else if kind.len() <= MAX {
            into.push(path);
        }
    }
}
