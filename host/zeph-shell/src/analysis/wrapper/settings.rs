//! Programs whose settings say what to run: compilers, package managers, build tools.

use zeph_core::command::Wraps;

use super::super::value::Value;
use super::carriers::{named, values};
use super::table::is_assignment;
use super::{Look, UNREADABLE, WrappedCommand};
use crate::leading;

const REASON: &str = "a setting tells it what to run or to load";

/// Options whose values lead a program to what it runs, whatever they are. A long name may be shortened.
const LEADING: &[(&[&str], &[&str])] = &[
    (&["ack"], &["--ackrc", "--output"]),
    (&["actionlint"], &["-pyflakes", "-shellcheck"]),
    (
        &["ld", "ld.bfd", "ld.gold", "ld.lld", "lld"],
        &["--error-handling-script"],
    ),
    (
        &["apt", "apt-get", "apt-cache", "aptitude"],
        &["--config-file", "-c"],
    ),
    (
        &["clang-tidy", "clang-query", "llc", "lli", "opt"],
        &["-load", "-load-pass-plugin"],
    ),
    (&["curl"], &["--engine"]),
    (
        &["ctest"],
        &[
            "--test-command",
            "--build-and-test",
            "--build-makeprogram",
            "-S",
        ],
    ),
    (
        &["emacs"],
        &[
            "--eval",
            "--execute",
            "--funcall",
            "--load",
            "--script",
            "-eval",
            "-f",
            "-l",
            "-script",
            "-x",
            "--init-directory",
            "--dump-file",
            "--user",
            "-u",
        ],
    ),
    (
        &["emacsclient"],
        &["--eval", "-e", "--alternate-editor", "-a"],
    ),
    (&["ctags"], &["--options", "--optlib-dir"]),
    (&["exiftool"], &["-config", "-if", "-p"]),
    (
        &["gpg", "gpg2"],
        &[
            "--options",
            "--homedir",
            "--exec-path",
            "--keyserver-options",
        ],
    ),
    (&["dpkg-architecture"], &["-c"]),
    (&["dpkg-buildpackage"], &["-p", "-r"]),
    (&["gpg-zip", "gpgtar"], &["--gpg", "--tar"]),
    (&["groff", "troff"], &["-U", "-F"]),
    (&["kak"], &["-e", "-E"]),
    (&["hg"], &["--config", "--config-file"]),
    (&["jj"], &["--config", "--config-file", "--config-toml"]),
    (
        &["latexmk"],
        &["-e", "-r", "-pdflatex", "-latex", "-lualatex", "-xelatex"],
    ),
    (
        &["rpm", "rpmbuild", "rpmspec", "rpmsign"],
        &["--load", "--macros", "--rcfile"],
    ),
    (
        &["openssl"],
        &["-engine", "-provider", "-provider-path", "-config"],
    ),
    (
        &["less"],
        &["--lesskey-content", "--lesskey-file", "--lesskey-src", "-k"],
    ),
    (&["man"], &["--config-file", "-C"]),
    (&["nano"], &["--rcfile", "-f"]),
    (
        &["nmap"],
        &["--datadir", "--script", "--script-args-file", "--servicedb"],
    ),
    (&["pandoc"], &["--lua-filter", "-L"]),
    (&["protoc"], &["--plugin"]),
    (&["pyright"], &["--pythonpath"]),
    (&["scp", "sftp"], &["-F", "-D"]),
    (&["ssh-add"], &["-s", "-S"]),
    (&["ssh-keygen"], &["-D", "-w"]),
    (&["svn"], &["--config-option", "--config-dir"]),
    (&["vifm"], &["--cmd", "-c"]),
    (&["lf"], &["-command", "-config"]),
    (&["wget"], &["--execute", "--config", "-e"]),
];

pub(super) fn look(name: &str, arguments: &[Value]) -> Option<Look> {
    let texts = || arguments.iter().map(|argument| argument.text.as_str());
    let leads = match name {
        "cmake" => return Some(cmake(arguments)),
        "apt" | "apt-get" | "apt-cache" | "aptitude" => return Some(apt(arguments)),
        "ip" => return behind(arguments, &["netns", "vrf"], "exec", 1),
        "jj" if texts().any(|text| text == "util") => {
            return behind(arguments, &["util"], "exec", 0);
        }
        "rpm" | "rpmbuild" | "rpmspec" | "rpmsign" => {
            let macros = ["--eval", "-E", "--define", "-D"].map(|option| values(arguments, option));
            let is_open = macros.iter().flatten().any(|value| !value.is_literal);
            is_open
                || texts().any(|text| {
                    ["%(", "%{lua", "%{shell", "%{load"]
                        .iter()
                        .any(|mark| text.contains(mark))
                })
        }
        "rustc" | "rustdoc" => texts().any(|text| {
            const MARKS: [&str; 8] = [
                "linker",
                "link-arg",
                "codegen-backend",
                "runtool",
                "llvm-args",
                "llvm-plugins",
                "dlltool",
                "test-builder",
            ];
            MARKS.iter().any(|mark| text.contains(mark)) || text.starts_with('@')
        }),
        "tex" | "latex" | "pdflatex" | "xelatex" | "lualatex" => {
            texts().any(|text| text.contains("shell-escape") || text.contains("write18"))
        }
        "gs" => texts()
            .any(|text| text.contains("%pipe%") || text.contains("=|") || text == "-dNOSAFER"),
        "convert" | "magick" | "identify" | "mogrify" | "montage" | "compare" | "composite"
        | "stream" | "import" | "display" | "animate" | "conjure" | "gm" => texts().any(|text| {
            text.contains('|')
                || text.contains("ephemeral:")
                || text.contains("msl:")
                || text.starts_with("https:") && text.contains(['"', '`', ';'])
        }),
        "ffmpeg" | "ffplay" | "ffprobe" => texts().any(|text| {
            let filters = ["ladspa=", "frei0r=", "lv2="];
            filters.iter().any(|filter| text.contains(filter))
        }),
        "openssl" => texts().any(|text| text.contains("SO_PATH")),
        "tree" => texts().any(|text| is_letters(text) && text.contains('R')),
        "yq" => texts().any(|text| text.contains("system(") || text.contains("system-operator")),
        "patch" => texts().any(|text| ["-e", "--ed"].contains(&text)),
        "kubectl" | "oc" | "helm" => leads_cluster(arguments),
        "cargo" => texts().any(|text| text.starts_with('+') && text.contains('/')),

        "gh" => {
            let operands: Vec<&str> = texts().filter(|text| !text.starts_with('-')).collect();
            if matches!(operands.as_slice(), ["repo" | "gist", "clone" | "fork", ..]) {
                return of_clone(arguments);
            }
            matches!(
                operands.as_slice(),
                ["alias", "set" | "import", ..]
                    | [
                        "extension" | "extensions" | "ext",
                        "exec" | "install" | "upgrade",
                        ..
                    ]
                    | ["config", "set", ..]
            )
        }
        "javac" => texts().any(|text| text.starts_with("-J") || text.contains("-processor")),
        "dc" | "lftp" | "ftp" => texts().any(|text| text.contains('!')),
        "ed" | "red" => true,
        "fzf" => values(arguments, "--bind")
            .iter()
            .any(|value| value.text.contains(['(', ':'])),
        _ if is_compiler(name) => texts().any(leads_compiler),
        _ => false,
    };
    let (_, options) = LEADING
        .iter()
        .find(|(names, _)| names.contains(&name))
        .unwrap_or(&(&[], &[]));
    let leads = leads || options.iter().any(|option| is_given(arguments, option));
    leads.then(|| Look::unknown(Wraps::Nothing, REASON))
}

/// `gh repo clone NAME -- OPTIONS`: the options are for git.
fn of_clone(arguments: &[Value]) -> Option<Look> {
    let at = arguments.iter().position(|word| word.text == "--")?;
    let options = arguments.get(at + 1..)?.iter().cloned();
    let words: Vec<Value> = std::iter::once(Value::literal("clone"))
        .chain(options)
        .collect();
    super::git::look("git", &words)
}

/// Letters of options behind one dash.
fn is_letters(text: &str) -> bool {
    let letters = text.strip_prefix('-').unwrap_or_default();
    !letters.is_empty() && letters.chars().all(|c| c.is_ascii_alphabetic())
}

/// Whether a client of a cluster is given a configuration that may name programs, other than one of the user's own.
fn leads_cluster(arguments: &[Value]) -> bool {
    let given = values(arguments, "--kubeconfig");
    let is_own = |value: &Value| {
        let homes = ["~/.kube/", "$HOME/.kube/", "${HOME}/.kube/"];
        homes.iter().any(|home| value.text.starts_with(home)) && !value.text.contains("..")
    };
    !given.iter().all(is_own)
}

/// Whether an option that leads elsewhere is there.
fn is_given(arguments: &[Value], option: &str) -> bool {
    let found = values(arguments, option);
    // What is read from there is nothing.
    found
        .iter()
        .any(|value| !matches!(value.text.as_str(), "/dev/null" | "none" | "robots=off"))
}

fn is_compiler(name: &str) -> bool {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || "-.".contains(c));
    ["cc", "gcc", "g++", "c++", "clang", "clang++", "cpp"]
        .iter()
        .any(|compiler| {
            name == *compiler
                || name
                    .strip_suffix(compiler)
                    .is_some_and(|before| before.ends_with('-'))
        })
}

pub(super) fn leads_compiler(option: &str) -> bool {
    const LEADS: [&str; 26] = [
        "--prefix",
        "--for-linker",
        "--for-assembler",
        "--ld-path",
        "--gcc-toolchain",
        "-gcc-toolchain",
        "--gcc-install-dir",
        "--config",
        "-ccc-install-dir",
        "-Xclang=",
        "--offload-arch-tool",
        "--nvptx-arch-tool",
        "--amdgpu-arch-tool",
        "--ptxas-path",
        "--cuda-path",
        "-plugin",
        "--plugin",
        "-wrapper",
        "--wrapper",
        "-B",
        "-fplugin",
        "-fpass-plugin",
        "-specs",
        "--specs",
        "-load",
        "@",
    ];
    // What the linker is told: plugins, and what it runs.
    let is_linkers = option.starts_with("-Wl,")
        && ["-plug", "plugin", "error-handling-script", "@"]
            .iter()
            .any(|mark| option.contains(mark))
        || ["-Wa,@", "-Wp,@"].iter().any(|mark| option.contains(mark));
    is_linkers
        || LEADS.iter().any(|leads| option.starts_with(leads))
        || option.starts_with("-fuse-ld=") && option.contains('/')
}

/// `SUBCOMMAND VERB … COMMAND`, with some words between.
fn behind(arguments: &[Value], subcommands: &[&str], verb: &str, between: usize) -> Option<Look> {
    let is_named = |word: &Value| subcommands.contains(&word.text.as_str());
    let at = arguments.iter().position(is_named)?;
    let rest = arguments.get(at + 1..)?;
    let rest = rest
        .split_first()
        .filter(|(first, _)| first.text == verb)?
        .1;
    let rest = rest.get(between..)?;
    let command = match rest.first() {
        Some(first) if first.text == "--" => rest.get(1..)?,
        _ => rest,
    };
    Some(Look::words(Wraps::WithEffect, command))
}

fn cmake(arguments: &[Value]) -> Look {
    let tool = arguments.iter().position(|word| word.text == "-E");
    if let Some(at) = tool {
        return tools(arguments.get(at + 1..).unwrap_or_default());
    }
    const TOOLS: [&str; 5] = [
        "CMAKE_AR",
        "CMAKE_NM",
        "CMAKE_OBJCOPY",
        "CMAKE_RANLIB",
        "CMAKE_STRIP",
    ];
    const MARKS: [&str; 11] = [
        "CLANG_TIDY",
        "CPPCHECK",
        "CPPLINT",
        "INCLUDE_WHAT_YOU_USE",
        "RULE_LAUNCH",
        "COMPILER",
        "LAUNCHER",
        "LINKER",
        "EMULATOR",
        "MAKE_PROGRAM",
        "_EXECUTABLE",
    ];
    let settings = values(arguments, "-D");
    let leads = |setting: &Value| {
        let (name, value) = setting.text.split_once('=').unwrap_or((&setting.text, ""));
        // `CMAKE_C_COMPILER:FILEPATH=…`.
        let name = name.split(':').next().unwrap_or_default();
        if name.contains("FLAGS") {
            return value.split_whitespace().any(leads_compiler);
        }
        let is_switch = ["ON", "OFF", "TRUE", "FALSE", "YES", "NO", "1", "0"].contains(&value);
        let is_tame = setting.is_literal
            && (is_switch || leading::is_tame("CC", value) || leading::leads_to_installed(value));
        let is_program = TOOLS.contains(&name) || MARKS.iter().any(|mark| name.contains(mark));
        is_program && !is_tame
    };
    // What stands behind `--` is for the tool that builds.
    let is_end = |word: &Value| word.text == "--";
    let of_tool = arguments.iter().position(is_end).map(|at| &arguments[at..]);
    match settings.iter().any(leads) || of_tool.is_some_and(super::languages::make_acts) {
        true => Look::unknown(Wraps::Nothing, REASON),
        false => Look::nothing(),
    }
}

/// The command-line tools of cmake: `env`, `time` and `chdir` run a command.
fn tools(arguments: &[Value]) -> Look {
    let Some((tool, rest)) = arguments.split_first() else {
        return Look::nothing();
    };
    if !tool.is_literal {
        return Look::unknown(Wraps::WithEffect, UNREADABLE);
    }
    let is_setting = |word: &&Value| {
        let is_option = word.text.starts_with("--") && word.is_literal;
        is_option || is_assignment(word)
    };
    let before = match tool.text.as_str() {
        "env" => rest.iter().take_while(is_setting).count(),
        "time" => 0,
        "chdir" => 1,
        _ => return Look::nothing(),
    };
    let mut command = rest.get(before..).unwrap_or_default();
    // `--modify X=…` takes the next word.
    if tool.text == "env"
        && rest
            .iter()
            .take(before)
            .any(|word| word.text == "--modify" || word.text == "--unset")
    {
        command = rest.get(rest.len()..).unwrap_or_default();
    }
    if command.is_empty() && !rest.is_empty() {
        return Look {
            inner: super::table::guesses(rest),
            ..Look::unknown(Wraps::WithEffect, UNREADABLE)
        };
    }
    Look::words(Wraps::WithEffect, command)
}

/// `-o NAME=VALUE`: hooks, and the places of programs.
fn apt(arguments: &[Value]) -> Look {
    const TAME: [&str; 9] = [
        "debug::",
        "acquire::retries",
        "acquire::http::timeout",
        "acquire::https::timeout",
        "acquire::forceipv4",
        "acquire::check-",
        "apt::get::",
        "apt::install-",
        "dpkg::use-pty",
    ];
    let settings = ["--option", "-o"].map(|option| values(arguments, option));
    let mut look = Look {
        wraps: Wraps::Nothing,
        inner: Vec::new(),
        unknown: is_given(arguments, "--config-file").then_some(REASON),
    };
    if is_given(arguments, "-c") {
        look.unknown = Some(REASON);
    }
    for setting in settings.iter().flatten() {
        let (name, value) = setting.text.split_once('=').unwrap_or((&setting.text, ""));
        let name = name.to_ascii_lowercase();
        if name.contains("invoke") || name.contains("pre-install-pkgs") {
            look.wraps = Wraps::WithEffect;
            look.inner.push(WrappedCommand::Text(setting.part(value)));
        } else if name == "dpkg::options::" && value.starts_with("--force-conf") {
        } else if !TAME.iter().any(|tame| name.starts_with(tame)) {
            look.unknown = Some(REASON);
        }
    }
    look
}

/// Programs with an option whose value is a program or a command, and that are seldom called otherwise.
pub(super) fn programs(name: &str, arguments: &[Value]) -> Option<Look> {
    let options: &[&str] = match name {
        "bat" | "batcat" | "delta" => &["--pager"],
        "dpkg" => &["--pre-invoke", "--post-invoke", "--status-logger"],
        "fzf" => &["--preview", "--with-shell"],
        "gpg" | "gpg2" => &["--agent-program", "--dirmngr-program", "--photo-viewer"],
        "helm" => &["--post-renderer"],
        "install" => &["--strip-program"],
        "mysql" | "mariadb" => &["--pager"],
        "rpm" => &["--pipe"],
        "svn" => &["--editor-cmd", "--diff-cmd", "--diff3-cmd"],
        _ => return None,
    };
    Some(super::carriers::with(named(arguments, options)))
}
