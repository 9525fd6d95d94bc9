//! The scripts of two shells. Those of clap cannot complete `KEY=VALUE`: bash hands a word that holds `=` or `:` over in pieces, and zsh
//! would put a blank behind a key.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::env::{self, EnvCompleter, Shells};

/// The script for bash. It needs no other script, and bash 3.2 reads it.
const BASH: &str = include_str!("bash.sh");

/// The script for zsh.
const ZSH: &str = include_str!("zsh.sh");

/// Every shell that can ask.
pub(super) const SHELLS: Shells<'static> =
    Shells(&[&Bash, &env::Elvish, &env::Fish, &env::Powershell, &Zsh]);

struct Bash;

struct Zsh;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        env::Bash.name()
    }

    fn is(&self, name: &str) -> bool {
        env::Bash.is(name)
    }

    fn write_registration(
        &self,
        variable: &str,
        name: &str,
        program: &str,
        completer: &str,
        script: &mut dyn io::Write,
    ) -> io::Result<()> {
        script.write_all(filled(BASH, variable, name, program, completer).as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        directory: Option<&Path>,
        answer: &mut dyn io::Write,
    ) -> io::Result<()> {
        env::Bash.write_complete(command, words, directory, answer)
    }
}

impl EnvCompleter for Zsh {
    fn name(&self) -> &'static str {
        env::Zsh.name()
    }

    fn is(&self, name: &str) -> bool {
        env::Zsh.is(name)
    }

    fn write_registration(
        &self,
        variable: &str,
        name: &str,
        program: &str,
        completer: &str,
        script: &mut dyn io::Write,
    ) -> io::Result<()> {
        script.write_all(filled(ZSH, variable, name, program, completer).as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        directory: Option<&Path>,
        answer: &mut dyn io::Write,
    ) -> io::Result<()> {
        env::Zsh.write_complete(command, words, directory, answer)
    }
}

/// A script with the names in their places. None of them has a letter that a shell reads.
fn filled(script: &str, variable: &str, name: &str, program: &str, completer: &str) -> String {
    script
        .replace("@VARIABLE@", variable)
        .replace("@NAME@", name)
        .replace("@PROGRAM@", program)
        .replace("@COMPLETER@", completer)
}
