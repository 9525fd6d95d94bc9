//! What programs do with the network, as far as their names and arguments say.
//!
//! The lists say what is known; what stands in none of them is unknown, and what is unknown is taken for a way out of what is private.

pub(super) use self::hosts::remote;
use self::hosts::{is_local, names_other};
use crate::command::SimpleCommand;
use crate::policy::globals;

mod hosts;

/// How far a command reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// It keeps to this machine, or fetches what packages and repositories hold and prints a log of its own.
    Stays,
    /// Nothing is known of it.
    Unknown,
    /// It asks others for what it prints: its address can carry something out.
    Contacts,
    /// It sends to others what it is given.
    Sends,
}

/// Programs that send what they are given.
const SENDS: &str = "\
    sftp ssh ftp ncftp lftp tftp telnet mail mailx sendmail mutt neomutt msmtp swaks s-nail rclone s3cmd s5cmd gsutil aws \
    az gcloud heroku vercel netlify flyctl fly wrangler firebase ngrok cloudflared croc wormhole twine transfer doctl \
    kubectl helm ansible ansible-playbook terraform tofu mosquitto_pub websocat wscat";

/// Programs that ask others for what they print.
const CONTACTS: &str = "\
    lynx w3m links elinks aria2c axel youtube-dl yt-dlp dig nslookup host drill whois finger ping ping6 traceroute \
    tracepath mtr gh glab tea hub nmap";

/// Programs and the first word of theirs that makes them send.
const SENDING_WORDS: &[(&str, &str)] = &[
    ("git", "push send-email request-pull send-pack"),
    ("hg sl", "push email"),
    ("svn", "commit ci import"),
    ("jj", "git"),
    (
        "npm pnpm yarn bun",
        "publish unpublish deprecate dist-tag login adduser",
    ),
    ("cargo", "publish yank owner login"),
    ("gem", "push yank"),
    ("poetry uv hatch flit pdm", "publish"),
    ("docker podman nerdctl buildah", "push login"),
    ("skopeo oras crane", "copy sync push cp"),
    ("mvn mvnw", "deploy"),
    ("gradle gradlew", "publish uploadArchives"),
    ("dotnet", "nuget"),
    ("ollama huggingface-cli hf", "push upload"),
];

/// Words of `gh` and its like that only read.
const READING_WORDS: &str = "\
    view list status diff checks search browse checkout clone download watch ls show auth help version";

/// Programs of everyday work: they keep to this machine, or speak to registries and repositories and print a log.
const STAYS: &str = "\
    cat ls dir cd pwd echo printf head tail less more grep egrep fgrep rg ag find fd sed awk gawk sort uniq wc cut tr tee \
    diff cmp comm patch cp mv rm mkdir rmdir touch ln chmod chown stat file du df tree basename dirname realpath readlink \
    tar zip unzip gzip gunzip zcat xz bzip2 zstd 7z base64 md5sum sha1sum sha256sum xxd od hexdump strings jq yq column \
    paste fold nl tac rev split xargs seq test [ [[ true false : sleep date env export unset set source . alias type \
    which command time timeout nohup nice wait exit return read declare local shift trap eval exec ulimit umask history \
    whoami id uname hostname ps top kill pkill jobs free uptime lsof tmux watch clear man bc expr mktemp install iconv \
    pandoc sqlite3 bat eza delta pushd popd printenv if for while case function sudo su git hg svn jj cargo rustc rustup \
    rustfmt clippy-driver npm npx pnpm yarn bun tsc eslint prettier vite webpack jest vitest mocha pip pip3 pipx uv uvx \
    poetry hatch pdm pytest tox nox ruff black mypy pyright flake8 go gofmt golangci-lint make cmake ninja meson bazel \
    gcc g++ cc c++ clang clang++ ld ar mvn mvnw gradle gradlew javac kotlinc dotnet gem bundle rake rspec composer \
    phpunit mix swift xcodebuild apt apt-get apk dnf yum brew pacman nix docker docker-compose podman just task \
    pre-commit shellcheck shfmt hadolint nextest wasm-pack playwright terraform-docs protoc buf code vim nano";

/// Programs of everyday work that ask the address they are given: it can carry something out.
const FETCHES: &str = "\
    git hg svn jj npm npx pnpm yarn bun pip pip3 pipx uv uvx poetry hatch pdm go cargo gem bundle composer docker podman \
    brew nix apt apt-get apk dnf yum";

/// Whether a list of words has this one.
fn has(list: &str, word: &str) -> bool {
    list.split(' ').any(|other| other == word)
}

/// How far `command` reaches. `is_known`: nothing else in its line may lead it to other hosts than its words name.
pub(super) fn reach(command: &SimpleCommand, is_known: bool) -> Reach {
    let name = command.base_name().to_lowercase();
    let words: Vec<&str> = command.arguments.iter().map(String::as_str).collect();
    if matches!(words[..], ["--version" | "--help" | "-h" | "-V"]) {
        return Reach::Stays;
    }
    let reach = by_name(&name, command, &words);
    match reach {
        Reach::Contacts | Reach::Sends if is_known && is_local(&name, &words, &command.holes) => {
            Reach::Stays
        }
        reach => reach,
    }
}

/// How far what `command` is given can come: as far as it reaches, or to the address that it fetches from.
pub(super) fn carries(command: &SimpleCommand, is_known: bool) -> Reach {
    let name = command.base_name().to_lowercase();
    match reach(command, is_known) {
        Reach::Stays if has(FETCHES, &name) && names_other(&command.arguments) => Reach::Contacts,
        reach => reach,
    }
}

fn by_name(name: &str, command: &SimpleCommand, words: &[&str]) -> Reach {
    let is_in = |list| has(list, name);
    let sends = |is_sending: bool, otherwise: Reach| match is_sending {
        true => Reach::Sends,
        false => otherwise,
    };
    match name {
        "curl" => sends(curl_sends(words), Reach::Contacts),
        "wget" => sends(
            has_option(words, &["--post", "--body", "--method"]),
            Reach::Contacts,
        ),
        "http" | "https" | "xh" | "xhs" | "httpie" => sends(http_sends(words), Reach::Contacts),
        "scp" | "rsync" => sends(
            words.iter().any(|word| remote(word).is_some()),
            Reach::Stays,
        ),
        "nc" | "ncat" | "netcat" | "socat" => Reach::Sends,
        "openssl" => sends(words.first() == Some(&"s_client"), Reach::Stays),
        "gh" | "glab" | "tea" | "hub" => sends(forge_sends(words), Reach::Contacts),
        _ if is_in(SENDS) => Reach::Sends,
        _ if is_in(CONTACTS) => Reach::Contacts,
        _ if has_sending_word(name, command) => Reach::Sends,
        // What opens connections from its own language.
        "awk" | "gawk" if words.iter().any(|word| word.contains("/inet")) => Reach::Sends,
        _ if is_in(STAYS) => Reach::Stays,
        _ => Reach::Unknown,
    }
}

/// What the words after the options of a program begin with, such as `push` of `git -C . push`.
pub(super) fn subcommand(command: &SimpleCommand) -> Option<&str> {
    let at = globals::end(command).unwrap_or(0);
    let mut words = command.arguments.iter().skip(at).map(String::as_str);
    words.find(|word| !word.starts_with('-'))
}

fn has_sending_word(name: &str, command: &SimpleCommand) -> bool {
    let of_program = SENDING_WORDS.iter().find(|(names, _)| has(names, name));
    let Some((_, sending)) = of_program else {
        return false;
    };
    let is_sending = |word: &str| has(sending, word);
    // `jj git push`, `dotnet nuget push`, `npm dist-tag add`, `mvn clean deploy`
    match name {
        "jj" | "dotnet" => command.arguments.iter().any(|word| word == "push"),
        "mvn" | "mvnw" | "gradle" | "gradlew" => {
            command.arguments.iter().any(|word| is_sending(word))
        }
        _ => subcommand(command).is_some_and(is_sending),
    }
}

/// Whether all that a command prints is a log of its own, although it sends: what is pushed, published or copied is not shown.
pub(super) fn prints_log(command: &SimpleCommand) -> bool {
    let name = command.base_name().to_lowercase();
    matches!(
        name.as_str(),
        "scp" | "rsync" | "rclone" | "twine" | "mail" | "sendmail"
    ) || has_sending_word(&name, command)
}

fn has_option(words: &[&str], beginnings: &[&str]) -> bool {
    let begins = |word: &&&str| {
        beginnings
            .iter()
            .any(|beginning| word.starts_with(beginning))
    };
    words.iter().any(|word| begins(&word))
}

fn curl_sends(words: &[&str]) -> bool {
    const LONG: [&str; 7] = [
        "--data",
        "--form",
        "--upload-file",
        "--json",
        "--mail",
        "--url-query",
        "--quote",
    ];
    let is_short = |word: &&str| {
        let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        letters.is_some_and(|letters| letters.contains(['d', 'F', 'T']))
    };
    has_option(words, &LONG) || words.iter().any(is_short) || names_method(words)
}

/// Whether a method other than those that read is named.
fn names_method(words: &[&str]) -> bool {
    let reads = |method: &str| {
        let method = method.trim_start_matches('=').to_uppercase();
        matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS")
    };
    words.iter().enumerate().any(|(at, word)| {
        let is_short = !word.starts_with("--") && word.starts_with('-');
        let short = word.split_once('X').filter(|_| is_short);
        let value = word
            .strip_prefix("--request")
            .or(short.map(|(_, value)| value));
        let value = match value {
            Some("") => words.get(at + 1).copied(),
            value => value,
        };
        value.is_some_and(|method| !reads(method))
    })
}

/// A method, or an item of a request, makes it send.
fn http_sends(words: &[&str]) -> bool {
    const METHODS: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];
    let is_item = |word: &&str| {
        let is_plain = !word.starts_with('-') && !word.contains("://");
        is_plain
            && (word.contains([':', '=', '@']) && !word.contains("==") || METHODS.contains(word))
    };
    words.iter().any(is_item)
}

fn forge_sends(words: &[&str]) -> bool {
    let mut plain = words.iter().filter(|word| !word.starts_with('-'));
    let first = plain.next().copied().unwrap_or_default();
    let second = plain.next().copied().unwrap_or_default();
    match first {
        "" => false,
        "api" => {
            const BODY: [&str; 5] = ["-f", "-F", "--field", "--raw-field", "--input"];
            has_option(words, &BODY) || names_method(words) || has_option(words, &["--method"])
        }
        first => !(has(READING_WORDS, first) || has(READING_WORDS, second)),
    }
}
