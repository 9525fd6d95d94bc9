//! Variables that lead a program to what it runs: another configuration, code to load, a command, another place for programs.
//!
//! A command that a rule allows must not be made another one by a variable that is set before it, or by an earlier command of the turn. There is no
//! end to such variables, so they are recognized by family: the programs that have them, and what their names say. Within a family a
//! plain value (a number, a word) is harmless, unless the name refers to a file or a command.

mod names;

use self::names::{COMPILERS, FLAGS, INSTALLED, leads_by_name};
pub(crate) use self::names::{is_command, is_generic, is_known};

/// Whether a variable with this value may lead some program elsewhere.
pub(crate) fn leads(name: &str, value: &str) -> bool {
    match is_command(name) {
        true => !is_tame_command(value),
        false => is_known(name) && !is_tame(name, value),
    }
}

/// Whether a command that a program is told to use is one of those that it uses anyway.
pub(crate) fn is_tame_command(command: &str) -> bool {
    const TAME: [&str; 9] = ["", ":", "cat", "less", "more", "nano", "true", "vi", "vim"];
    TAME.contains(&command)
}

/// Whether a value of a known variable leads nowhere.
pub(crate) fn is_tame(name: &str, value: &str) -> bool {
    match name {
        // What a name runs, and where `popd` goes.
        "BASH_ALIASES" | "BASH_CMDS" | "DIRSTACK" => false,
        _ if value.is_empty() => true,
        "NODE_OPTIONS" => value.split_whitespace().all(is_node_option),
        "MAKEFLAGS" | "GNUMAKEFLAGS" | "MFLAGS" => value.split_whitespace().all(is_make_option),
        "JAVA_TOOL_OPTIONS" | "JDK_JAVA_OPTIONS" | "MAVEN_OPTS" | "GRADLE_OPTS" | "JAVA_OPTS" => {
            value
                .split_whitespace()
                .all(|option| option.starts_with("-Xm") && is_plain(option))
        }
        "LESS" => value.chars().all(|c| "-FRXSiIMNKsnqQr ".contains(c)),
        "GIT_CONFIG_GLOBAL" | "GIT_CONFIG_SYSTEM" | "PIP_CONFIG_FILE" if value == "/dev/null" => {
            true
        }
        // Addresses of this protocol run commands; a category with a dot is imported.
        "GIT_ALLOW_PROTOCOL" => value.split(':').all(|protocol| protocol != "ext"),
        "PYTHONWARNINGS" if value.contains('.') => false,
        _ if name.ends_with("SAN_OPTIONS") => value
            .split([':', ' '])
            .all(|option| is_plain(option) && !option.contains("path")),
        _ if FLAGS.contains(&name) => are_flags(value),
        _ if COMPILERS.contains(&name) => value.split_whitespace().all(is_compiler),
        _ if INSTALLED.contains(&name) => leads_to_installed(value),
        _ => is_plain(value) && !value.starts_with('-') && !leads_by_name(name),
    }
}

/// Whether a variable names a compiler or holds options of one.
pub(crate) fn is_tool(name: &str) -> bool {
    COMPILERS.contains(&name) || FLAGS.contains(&name)
}

/// Whether a variable says where a tool chain is installed.
pub(crate) fn is_installed(name: &str) -> bool {
    INSTALLED.contains(&name) || name.ends_with("_HOME") && !name.starts_with("XDG_")
}

/// A word without folders.
fn is_plain(value: &str) -> bool {
    value
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-_.,:=+%@".contains(c))
}

fn is_node_option(option: &str) -> bool {
    const TAME: [&str; 8] = [
        "--max-old-space-size=",
        "--max-semi-space-size=",
        "--stack-trace-limit=",
        "--no-warnings",
        "--no-deprecation",
        "--trace-warnings",
        "--enable-source-maps",
        "--unhandled-rejections=",
    ];
    is_plain(option)
        && (TAME.iter().any(|tame| option.starts_with(tame))
            || option == "--experimental-vm-modules"
            || option == "--openssl-legacy-provider")
}

fn is_make_option(option: &str) -> bool {
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let letters = option.strip_prefix('-').unwrap_or(option);
    match letters.strip_prefix('j') {
        Some(jobs) => is_number(jobs),
        None => {
            letters.chars().all(|c| "kqrRsSwn".contains(c))
                || ["-no-print-directory", "-silent", "-keep-going"].contains(&letters)
                || letters.starts_with("-jobs=") && is_plain(letters)
        }
    }
}

/// Whether all words are options of compilers that name no program and load no code into them.
fn are_flags(value: &str) -> bool {
    const EXACT: [&str; 15] = [
        "-pthread",
        "-pipe",
        "-static",
        "-v",
        "-q",
        "-race",
        "-trimpath",
        "-s",
        "-w",
        "--cfg",
        "--cap-lints",
        "-A",
        "-C",
        "-x",
        "-D",
    ];
    const BEGIN: [&str; 14] = [
        "-O",
        "-g",
        "-std=",
        "-D",
        "-U",
        "-I",
        "-L",
        "-l",
        "-m",
        "-mod=",
        "-tags=",
        "-count=",
        "-buildvcs=",
        "-p=",
    ];
    const LOADS: [&str; 4] = ["load", "plugin", "wrapper", "specs"];
    const CODEGEN: [&str; 14] = [
        "opt-level=",
        "target-cpu=",
        "debuginfo=",
        "target-feature=",
        "codegen-units=",
        "lto",
        "panic=",
        "instrument-coverage",
        "strip=",
        "debug-assertions",
        "overflow-checks",
        "embed-bitcode",
        "force-frame-pointers",
        "relocation-model=",
    ];
    value.split_whitespace().all(|word| {
        let codegen = word.strip_prefix("-C").unwrap_or(word);
        let is_codegen =
            !codegen.is_empty() && CODEGEN.iter().any(|tame| codegen.starts_with(tame));
        let is_warning = word.starts_with("-W") && !word.contains(',');
        let is_feature =
            word.starts_with("-f") && !word.contains("plugin") && !word.contains("use-ld");
        let loads = LOADS.iter().any(|mark| word.contains(mark)) && !word.starts_with("-D");
        let is_listed =
            EXACT.contains(&word) || !loads && BEGIN.iter().any(|tame| word.starts_with(tame));
        let is_word =
            !word.starts_with('-') && !word.contains('=') && is_plain(word) && !word.contains('@');
        is_codegen || is_warning || is_feature || is_listed || is_word
    })
}

/// The usual compilers and what is put before them, by their names alone.
fn is_compiler(word: &str) -> bool {
    const NAMES: [&str; 22] = [
        "cc", "gcc", "clang", "c++", "g++", "clang++", "ccache", "sccache", "ar", "gcc-ar",
        "llvm-ar", "ld", "ld.lld", "lld", "mold", "nm", "ranlib", "strip", "as", "cpp", "gfortran",
        "musl-gcc",
    ];
    let version = word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let name = version.strip_suffix('-').unwrap_or(version);
    NAMES.contains(&name)
}

/// Whether a search path leads to what is installed, in the system or by the user, and to what it held before.
pub(crate) fn leads_to_installed(path: &str) -> bool {
    const BELOW: [&str; 11] = [
        "/usr/",
        "/opt/",
        "/snap/",
        "/nix/",
        "$HOME/",
        "${HOME}/",
        "~/",
        "$CARGO_HOME/",
        "$JAVA_HOME/",
        "$GOPATH/",
        "$NVM_DIR/",
    ];
    path.trim_matches('"').split(':').all(|entry| {
        let is_below = BELOW.iter().any(|below| entry.starts_with(below));
        let is_whole = ["$PATH", "${PATH}", "/bin", "/sbin"].contains(&entry);
        is_whole || (is_below && !entry.contains("..") && !entry.contains("$("))
    })
}

/// Whether a search path leads to the same programs wherever a shell is.
pub(crate) fn is_absolute(path: &str) -> bool {
    path.split(':').all(|entry| entry.starts_with('/'))
}

/// Whether the value of a variable would run a command wherever it is read as a number.
pub(crate) fn holds_subscript(value: &str) -> bool {
    value.contains('[') && value.contains(['$', '`'])
}

#[cfg(test)]
mod tests;
