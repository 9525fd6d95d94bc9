//! What a person at a terminal is asked before it happens.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::thread;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::{WANTS, WANTS_MORE, wanting};
use crate::product::{Product, Ran};

/// Runs the program with a terminal as standard input and standard error, where a user types `answer`.
fn typed(product: &Product, words: &[&str], answer: &str) -> Ran {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let terminal = File::options().read(true).write(true).open(name).unwrap();
    let mut all = vec!["plugin"];
    all.extend(words);
    let mut command = product.command(&all);
    command
        .stdin(terminal.try_clone().unwrap())
        .stderr(terminal)
        .stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    // It holds our ends of the terminal, which would keep it open.
    drop(command);
    let mut master = File::from(master);
    let answer = format!("{answer}\n");
    let reader = thread::spawn(move || {
        let (mut said, mut is_answered) = (Vec::new(), false);
        let mut part = [0; 1024];
        // The end is an error, once nobody has the other side any more.
        while let Ok(n_bytes @ 1..) = master.read(&mut part) {
            said.extend_from_slice(&part[..n_bytes]);
            // What is typed before the question answers nothing.
            if !is_answered && said.ends_with(b"[y/N] ") {
                master.write_all(answer.as_bytes()).unwrap();
                is_answered = true;
            }
        }
        String::from_utf8(said).unwrap()
    });
    let mut ran = Ran::from(child.wait_with_output().unwrap());
    ran.stderr = reader.join().unwrap();
    ran
}

/// Asked with these words, `n` and everything unclear leaves what is, `y` does it.
fn check(product: &Product, words: &[&str], question: &[&str], state: impl Fn() -> String) {
    let before = state();
    for answer in ["n", "", "yess"] {
        let ran = typed(product, words, answer);
        assert_eq!(ran.code, Some(5), "{answer:?}: {ran:?}");
        assert_eq!(state(), before, "{answer:?}: {ran:?}");
        for words in question {
            assert!(ran.stderr.contains(words), "no {words:?} in {ran:?}");
        }
    }
    let ran = typed(product, words, "y");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_ne!(state(), before, "{ran:?}");
}

#[test]
fn a_person_is_asked_before_anything_is_decided() {
    let product = Product::new();
    product
        .file("x.wasm", wanting(WANTS))
        .file("y.wasm", wanting(WANTS_MORE));
    let state = || product.plugin(&["list", "--json"]).stdout;
    let add = [
        "Add it as plugin `x`?",
        "tool echo",
        "requests host api.example.com",
    ];
    check(&product, &["add", "x.wasm"], &add, state);
    let grant = [
        "Grant all of it?",
        "host api.example.com",
        "It asks for the weather.",
    ];
    check(&product, &["grant", "x", "--all"], &grant, state);
    let replace = ["Put it in the place of"];
    let words = ["add", "y.wasm", "--name", "x", "--replace"];
    check(&product, &words, &replace, state);
    let approve = ["Accept plugin `x` as it is now?"];
    check(&product, &["approve", "x"], &approve, state);
    let remove = ["Delete `", "granted to it?"];
    check(&product, &["remove", "x"], &remove, state);
}
