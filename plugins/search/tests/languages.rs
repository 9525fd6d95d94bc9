//! What counts as a definition in each language, and what patterns match.
#![expect(clippy::unwrap_used, reason = "a failure is a failed test")]

use zeph_plugin_search::language::{Language, Reading, of_path};
use zeph_plugin_search::outline::{self, Outline};
use zeph_plugin_search::pattern::Pattern;

fn language(path: &str) -> &'static Language {
    match of_path(path) {
        Some(Reading::Code(language)) => language,
        other => panic!("{other:?}"),
    }
}

/// `kind name:first-last` of each definition, in the order of the text.
fn definitions(path: &str, text: &str) -> Vec<String> {
    let outline = Outline::of(Reading::Code(language(path)), text);
    let defined = outline.units.iter().filter_map(|unit| {
        let (name, kind) = unit.definition.as_ref()?;
        Some(format!("{kind} {name}:{}-{}", unit.start + 1, unit.end + 1))
    });
    defined.collect()
}

#[test]
fn rust() {
    let text = "mod a {\n    pub struct B<T>(T);\n    impl<T> B<T> {\n        const C: u8 = 1;\n        fn d(&self) {}\n    }\n}\n\
                enum E { F }\ntrait G { fn h(); type I; }\nmacro_rules! j { () => {} }\nstatic K: u8 = 0;\ntype L = u8;\nunion M { n: u8 }";
    assert_eq!(
        definitions("a.rs", text),
        [
            "module a:1-7",
            "struct B:2-2",
            "constant C:4-4",
            "function d:5-5",
            "enum E:8-8",
            "trait G:9-9",
            "function h:9-9",
            "macro j:10-10",
            "static K:11-11",
            "type L:12-12",
            "union M:13-13",
        ]
    );
}

#[test]
fn python() {
    let text = "class A(B):\n    def c(self):\n        def d(): pass\n    async def e(self): ...\n@f\ndef g(): pass\n";
    let expected = [
        "class A:1-4",
        "function c:2-3",
        "function d:3-3",
        "function e:4-4",
        "function g:6-6",
    ];
    assert_eq!(definitions("a.py", text), expected);
}

#[test]
fn typescript() {
    let text = "export class A<T> { b(): void {} }\nabstract class C { abstract d(): T }\ninterface E { f(): void }\ntype G = H\n\
                enum I { J }\nnamespace K { function l() {} }\nconst m = <T,>(n: T) => n\nconst o = 1\nfunction* p() {}";
    let expected = [
        "class A:1-1",
        "method b:1-1",
        "class C:2-2",
        "method d:2-2",
        "interface E:3-3",
        "method f:3-3",
        "type G:4-4",
        "enum I:5-5",
        "namespace K:6-6",
        "function l:6-6",
        "function m:7-7",
        "function p:9-9",
    ];
    assert_eq!(definitions("a.ts", text), expected);
}

#[test]
fn javascript() {
    let text = "function a() {}\nclass B { c() {} get d() {} }\nconst e = async () => <F g={1}/>\nlet h = function () {}";
    let expected = [
        "function a:1-1",
        "class B:2-2",
        "method c:2-2",
        "method d:2-2",
        "function e:3-3",
        "function h:4-4",
    ];
    assert_eq!(definitions("a.jsx", text), expected);
    let tsx = "export function App() {\n  return <a b={c}>d</a>\n}";
    assert_eq!(definitions("a.tsx", tsx), ["function App:1-3"]);
}

#[test]
fn go() {
    let text = "package p\nfunc a() {}\nfunc (b *B) c() {}\ntype B struct { d int }\ntype E interface { F() }\ntype G = B\nconst h = 1";
    let expected = [
        "function a:2-2",
        "method c:3-3",
        "type B:4-4",
        "type E:5-5",
        "type G:6-6",
        "constant h:7-7",
    ];
    assert_eq!(definitions("a.go", text), expected);
}

#[test]
fn c() {
    let text = "#define A 1\n#define B(x) x\nstruct c { int d; };\nstruct c *e(int f) { return 0; }\ntypedef struct { int g; } h;\n\
                enum i { J };\nunion k { int l; };\nstatic int (*m(void))(int) { return 0; }";
    assert_eq!(
        definitions("a.c", text),
        [
            "macro A:1-1",
            "macro B:2-2",
            "struct c:3-3",
            "function e:4-4",
            "type h:5-5",
            "enum i:6-6",
            "union k:7-7",
            "function m:8-8",
        ]
        .map(str::to_owned)
        .to_vec()
    );
}

#[test]
fn cpp() {
    let text = "namespace a { class B { public: B(); int c() const { return 0; } }; }\nint a::B::d() { return 1; }\n\
                template <class T> struct E { T f; };\nusing G = int;\nenum class H { I };\nT& j() { return k; }";
    let expected = [
        "namespace a:1-1",
        "class B:1-1",
        "function c:1-1",
        "function d:2-2",
        "struct E:3-3",
        "type G:4-4",
        "enum H:5-5",
        "function j:6-6",
    ];
    assert_eq!(definitions("a.cpp", text), expected);
}

#[test]
fn java() {
    let text = "package a;\nclass B<T> {\n  B() {}\n  int c() { return 1; }\n  interface D { void e(); }\n  enum F { G }\n  record H(int i) {}\n  @interface J {}\n}";
    let expected = [
        "class B:2-9",
        "constructor B:3-3",
        "method c:4-4",
        "interface D:5-5",
        "method e:5-5",
        "enum F:6-6",
        "record H:7-7",
        "annotation J:8-8",
    ];
    assert_eq!(definitions("A.java", text), expected);
}

#[test]
fn broken_code_and_long_lines_are_still_read() {
    let broken = definitions("a.rs", "fn a() { b( }\n}}}}\nstruct C;");
    assert!(
        broken.iter().any(|one| one.starts_with("struct C")),
        "{broken:?}"
    );
    let long = format!("var a = \"{}\";\nfunction b() {{}}", "x".repeat(1_000_000));
    let outline = Outline::of(Reading::Code(language("a.js")), &long);
    assert!(outline.is_generated);
    assert!(outline.units.iter().all(|unit| unit.definition.is_none()));
}

/// The lines, from 1, at which `pattern` matches.
fn matches(path: &str, pattern: &str, text: &str) -> Vec<u32> {
    let language = language(path);
    let pattern = Pattern::of(pattern, language).unwrap();
    let tree = outline::tree(language, text).unwrap();
    let places = pattern.places(&tree, text);
    places.into_iter().map(|(start, _)| start + 1).collect()
}

#[test]
fn patterns_match_syntax() {
    let rust = "fn a() { b(1); }\nfn c() { b(2, d()); }\nfn e() { f::b(3); x == x; x == y; }";
    assert_eq!(matches("a.rs", "b($A)", rust), [1]);
    assert_eq!(matches("a.rs", "b($$$A)", rust), [1, 2]);
    assert_eq!(matches("a.rs", "$A == $A", rust), [3]);
    assert_eq!(matches("a.rs", "fn $NAME() { $$$BODY }", rust), [1, 2, 3]);
    let python = "foo(1)\nfoo(1, 2)\nbar(foo)\n# foo(3)\n'foo(4)'\n";
    assert_eq!(matches("a.py", "foo($A, $B)", python), [2]);
    assert_eq!(matches("a.py", "foo($$$)", python), [1, 2]);
    let script = "if (a) { return b }\nconsole.log(a, b)\nconsole.log()\n";
    assert_eq!(matches("a.ts", "console.log($$$ARGS)", script), [2, 3]);
    assert_eq!(
        matches(
            "a.go",
            "$X.Close()",
            "package p\nfunc f() {\n\tg.Close()\n\th.Open()\n}\n"
        ),
        [3]
    );
    assert_eq!(
        matches("a.c", "free($P)", "void f() {\n  free(a);\n  g(a);\n}\n"),
        [2]
    );
    assert_eq!(
        matches(
            "A.java",
            "$X.close()",
            "class A { void f() {\n  a.close();\n  b.open();\n} }"
        ),
        [2]
    );
}

#[test]
fn patterns_that_are_no_code_are_none() {
    for language in ["a.rs", "a.py", "a.ts", "a.go", "a.c", "A.java"].map(language) {
        assert!(Pattern::of("$A", language).is_none(), "{}", language.name);
        assert!(Pattern::of(")(", language).is_none(), "{}", language.name);
    }
}
