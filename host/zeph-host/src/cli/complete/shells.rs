//! The scripts of two shells. Those of clap cannot complete `KEY=VALUE`: bash hands a word that holds `=` or `:` over in pieces, and zsh
//! would put a blank behind a key.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::env::{self, EnvCompleter, Shells};

/// Every shell that can ask.
pub(super) const SHELLS: Shells<'static> =
    Shells(&[&BASH, &env::Elvish, &env::Fish, &env::Powershell, &ZSH]);

/// It needs no other script, and bash 3.2 reads it.
const BASH: ScriptedShell = ScriptedShell {
    shell: &env::Bash,
    script: include_str!("bash.sh"),
};

const ZSH: ScriptedShell = ScriptedShell {
    shell: &env::Zsh,
    script: include_str!("zsh.sh"),
};

/// A shell of clap with another script.
struct ScriptedShell {
    shell: &'static dyn EnvCompleter,
    script: &'static str,
}

impl EnvCompleter for ScriptedShell {
    fn name(&self) -> &'static str {
        self.shell.name()
    }

    fn is(&self, name: &str) -> bool {
        self.shell.is(name)
    }

    fn write_registration(
        &self,
        variable: &str,
        name: &str,
        program: &str,
        completer: &str,
        script: &mut dyn io::Write,
    ) -> io::Result<()> {
        script.write_all(filled(self.script, variable, name, program, completer).as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        directory: Option<&Path>,
        answer: &mut dyn io::Write,
    ) -> io::Result<()> {
        self.shell.write_complete(command, words, directory, answer)
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
