//! Runners of a project's own programs: `poetry run PROGRAM …`. A rule for the runner covers what it runs; rules that refuse or
//! ask look inside nevertheless.

use zeph_core::command::Wraps;

use super::super::value::Value;
use super::{Look, UNREADABLE, WrappedCommand, synonyms};

/// Runners, the subcommands by their usual names behind which a command stands (none: right behind the name), and the words between.
const RUNNERS: &[(&str, &[&str], usize)] = &[
    ("asdf", &["exec"], 0),
    ("aws-vault", &["exec"], 1),
    ("buildah", &["unshare"], 0),
    ("bun", &["exec", "run", "x"], 0),
    ("bundle", &["exec"], 0),
    ("bunx", &[], 0),
    ("c8", &[], 0),
    ("cabal", &["exec"], 0),
    ("chamber", &["exec"], 1),
    ("chruby-exec", &[], UP_TO_DASHES),
    ("composer", &["exec"], 0),
    ("conda", &["run"], 0),
    ("corepack", &[], 0),
    ("devbox", &["run"], 0),
    ("devenv", &["shell"], 0),
    ("direnv", &["exec"], 1),
    ("distrobox", &["enter"], UP_TO_DASHES),
    ("doppler", &["run"], 0),
    ("dotenvx", &["run"], 0),
    ("env-cmd", &[], 0),
    ("fakechroot", &[], 0),
    ("flox", &["activate"], UP_TO_DASHES),
    ("fnm", &["exec"], 0),
    ("foreman", &["run"], 0),
    ("gpg-agent", &["--daemon"], 0),
    ("guix", &["environment", "shell"], UP_TO_DASHES),
    ("hatch", &["run"], 0),
    ("heroku", &["local:run"], 0),
    ("infisical", &["run"], 0),
    ("kcov", &[], 1),
    ("lage", &["exec"], 0),
    ("lerna", &["exec"], 0),
    ("libtool", &["--mode=execute"], 0),
    ("lockf", &[], 1),
    ("mamba", &["run"], 0),
    ("meson", &["devenv"], 0),
    ("meta", &["exec"], 0),
    ("micromamba", &["run"], 0),
    ("mise", &["exec", "x"], UP_TO_DASHES),
    ("mix", &["cmd"], 0),
    ("mr", &["run"], 0),
    ("nodenv", &["exec"], 0),
    ("npm", &["exec", "x"], 0),
    ("npx", &[], 0),
    ("nvm", &["exec"], 0),
    ("nx", &["exec"], 0),
    ("nyc", &[], 0),
    ("onchange", &[], UP_TO_DASHES),
    ("op", &["run"], 0),
    ("opam", &["exec"], 0),
    ("overmind", &["run"], 0),
    ("pdm", &["run"], 0),
    ("pipenv", &["run"], 0),
    ("pipx", &["run"], 0),
    ("pixi", &["exec", "run"], 0),
    ("pnpm", &["exec", "dlx"], 0),
    ("pnpx", &[], 0),
    ("podman", &["unshare"], 0),
    ("poetry", &["run"], 0),
    ("py-spy", &["record"], 0),
    ("pyenv", &["exec"], 0),
    ("rbenv", &["exec"], 0),
    ("retry", &[], 0),
    ("rtx", &["exec", "x"], UP_TO_DASHES),
    ("rush-pnpm", &["dlx", "exec"], 0),
    ("rustup", &["run"], 1),
    ("rvm", &["do"], 0),
    ("rye", &["run"], 0),
    ("samply", &["record"], 0),
    ("sops", &["exec-env", "exec-file"], 1),
    ("stack", &["exec"], 0),
    ("terragrunt", &["exec"], 0),
    ("toolbox", &["run"], 0),
    ("tox", &["exec"], 0),
    ("uv", &["run"], 0),
    ("uvx", &[], 0),
    ("volta", &["run"], 0),
    ("yarn", &["exec", "dlx"], 0),
];

/// Any number of words, up to `--`.
const UP_TO_DASHES: usize = usize::MAX;

/// Runners that take a word before the command, or none: `nvm exec 20 PROGRAM`, `env-cmd .env PROGRAM`.
const MAY_TAKE_A_WORD: [&str; 2] = ["env-cmd", "nvm"];

/// Those that give a word with spaces to a shell.
const SHELL_RUNNERS: [&str; 9] = [
    "bun", "hatch", "lerna", "meta", "mix", "pixi", "pnpm", "sops", "yarn",
];

/// Subcommands that run a script of the project by this name, and the program where there is none.
const SCRIPTS_FIRST: [(&str, &str); 1] = [("bun", "run")];

/// Subcommands of pnpm. Any other word is a script of the project, and a program where there is none.
///
/// Source: `pnpm help --all`, and the names of npm that it hands on.
const PNPM: &str = "access add adduser approve-builds audit bin bugs c cache cat-file cat-index completion config create dedupe deploy deprecate \
                    dislink dist-tag dlx docs doctor edit env exec fetch find-hash get help i ignored-builds import info init install \
                    install-test it la licenses link list ll ln login logout ls m multi outdated owner pack patch patch-commit patch-remove \
                    ping pkg prefix profile prune publish rb rebuild recursive remove repo restart rm root run run-script s se search \
                    self-update server set setup show star stars start stop store t team test token tst un uninstall unlink unpublish \
                    unstar up update upgrade v version view whoami why";

/// Options of runners that take the next word.
///
/// Sources: the `--help` of the programs.
const VALUED: &[(&str, &str)] = &[
    ("aws-vault", "-d --duration -t --mfa-token --region"),
    ("bun bunx", "-p --package --cwd -F --filter"),
    ("bundle", "--gemfile"),
    (
        "c8 nyc",
        "-r --reporter -n --include -x --exclude -e --extension -c --config -o --report-dir --reports-dir --temp-dir \
         --temp-directory --cwd --src --nycrc-path",
    ),
    (
        "conda mamba micromamba",
        "-n --name -p --prefix -r --root-prefix --cwd",
    ),
    (
        "doppler",
        "-p --project -c --config -t --token --name-transformer --fallback --mount",
    ),
    ("env-cmd", "-f --file -e --environments -r --rc-file"),
    ("fnm", "--using"),
    (
        "hatch",
        "-e --env -p --project --data-dir --cache-dir --config",
    ),
    ("infisical", "-e --env --projectId --path --token -t --tags"),
    ("lerna", "--scope --ignore --since --concurrency --loglevel"),
    ("mise rtx", "-C --cd -E --env -j --jobs -c --command"),
    (
        "npm npx",
        "-p --package -w --workspace -c --call -C --prefix --cache --loglevel --registry --script-shell --userconfig",
    ),
    (
        "op",
        "--account --config --env-file --environment --session",
    ),
    ("opam", "--root --switch"),
    ("pipx", "--spec --python --pip-args -i --index-url"),
    ("pixi", "-e --environment -p --platform --manifest-path"),
    (
        "pnpm pnpx",
        "--package -C --dir -F --filter --reporter --allow-build",
    ),
    ("poetry", "-C --directory -P --project"),
    ("py-spy", "-o --output -f --format -d --duration -r --rate"),
    ("samply", "-o --output -r --rate -d --duration"),
    ("tox", "-e -c --conf --workdir"),
    (
        "uv uvx",
        "--with --with-editable --with-requirements --env-file -p --python --extra --no-extra --group --no-group --only-group \
         --directory --project --package --from --index --default-index -i --index-url --extra-index-url -f --find-links -w \
         --cache-dir --config-file --color --index-strategy --keyring-provider --resolution --prerelease --link-mode \
         --exclude-newer -P --upgrade-package --refresh-package --reinstall-package -C --config-setting --python-platform -c \
         --constraints -b --build-constraints --overrides",
    ),
    ("volta", "--node --npm --pnpm --yarn --env"),
    ("yarn", "-p --package"),
];

/// Options that take no value, of all runners that have them.
const FLAGS: &str = "-q -v -y --all-extras --bun --exact --frozen --isolated --live-stream --locked --no-capture-output --no-config \
                     --no-dev --no-install --no-project --no-sync --offline --quiet --silent --verbose --yes";

/// Options that take no value, of single runners.
const OWN_FLAGS: &[(&str, &str)] = &[
    ("bun", "--hot --if-present --smol --watch"),
    ("npm npx nyc", "-s"),
    ("uv uvx", "-m -s --module --script"),
];

/// Most words that are taken for the beginning of a command; with more, it is not known.
const GUESSES_MAX: usize = 8;

/// Words of programs that no table knows behind which `--` and a command may stand.
const RUNS: [&str; 3] = ["exec", "run", "shell"];

/// Programs with such words that give what stands behind `--` to something of their own: what they built, a script, a search.
const FOR_THEIR_OWN: &str = "bazel bazelisk cargo dart deno dotnet flutter gh git go grep just make rg swift task turbo zig";

/// Where a command may begin.
struct Beginning {
    at: usize,
    is_certain: bool,
}

/// The command behind the subcommand. What stands behind `--` is one, and so is the first word that is no option. Behind an option that is not
/// known stands either its value or the command; both are looked at.
pub(super) fn look(name: &str, arguments: &[Value]) -> Option<Look> {
    if name == "start-server-and-test" {
        let texts = arguments.iter().filter(|word| has_space(word)).cloned();
        return Some(super::carriers::with(
            texts.map(WrappedCommand::Text).collect(),
        ));
    }
    let Some((_, subcommands, between)) = RUNNERS.iter().find(|(runner, ..)| *runner == name)
    else {
        return of_unknown(name, arguments);
    };
    if subcommands.is_empty() {
        return Some(behind(name, arguments, *between, true));
    }
    let starts = starts(name, subcommands, arguments);
    let looks = starts.iter().map(|start| {
        let rest = arguments.get(start.at..).unwrap_or_default();
        behind(name, rest, *between, start.is_certain)
    });
    let Some(mut look) = looks.reduce(Look::and) else {
        return of_fallback(name, arguments);
    };
    if starts.len() >= GUESSES_MAX {
        look.unknown = Some(UNREADABLE);
    }
    Some(look)
}

/// Where the words behind the subcommand begin. One that an option may have for its value is none then, and the next one is.
fn starts(name: &str, subcommands: &[&str], arguments: &[Value]) -> Vec<Beginning> {
    let mut found = Vec::new();
    let mut may_be_value = false;
    for (at, word) in arguments.iter().enumerate() {
        let text = word.text.as_str();
        let is_meant = |whole: &&str| *whole == text || synonyms::means(name, text, whole);
        if subcommands.iter().any(is_meant) {
            found.push(Beginning {
                at: at + 1,
                is_certain: !SCRIPTS_FIRST.contains(&(name, text)),
            });
            if !may_be_value || found.len() >= GUESSES_MAX {
                break;
            }
        }
        may_be_value = is_option(text) && !has_no_value(name, text);
    }
    found
}

/// What stands in the words behind the subcommand.
fn behind(name: &str, rest: &[Value], between: usize, is_certain: bool) -> Look {
    let mut look = Look::nothing();
    let beginnings = beginnings(name, rest, between);
    if beginnings.len() >= GUESSES_MAX {
        look.unknown = Some(UNREADABLE);
    }
    for beginning in beginnings {
        let inner = inner(
            name,
            rest.get(beginning.at..).unwrap_or_default(),
            is_certain && beginning.is_certain,
        );
        if matches!(inner, Some(WrappedCommand::Text(_))) {
            look.wraps = Wraps::WithEffect;
        }
        look.inner.extend(inner);
    }
    look
}

/// Where the command may begin in the words behind the subcommand.
fn beginnings(name: &str, rest: &[Value], between: usize) -> Vec<Beginning> {
    let valued = of_runner(VALUED, name);
    let mut found: Vec<Beginning> = Vec::new();
    let mut n_words = 0;
    let mut n_before = usize::from(MAY_TAKE_A_WORD.contains(&name)).saturating_add(between);
    let mut may_be_value = false;
    let mut at = 0;
    while let Some(word) = rest.get(at).filter(|_| found.len() < GUESSES_MAX) {
        at += 1;
        let text = word.text.as_str();
        if text == "--" {
            found.push(Beginning {
                at,
                is_certain: true,
            });
            return found;
        }
        if is_option(text) {
            at += usize::from(holds(valued, text));
            may_be_value = !has_no_value(name, text) && !holds(valued, text);
            continue;
        }
        let was_option = std::mem::take(&mut may_be_value);
        n_before = n_before.saturating_add(usize::from(was_option));
        if n_words >= between {
            let is_second = MAY_TAKE_A_WORD.contains(&name) && !was_option;
            let is_certain = found.is_empty() || is_second;
            found.push(Beginning {
                at: at - 1,
                is_certain,
            });
        }
        n_words += 1;
        if n_words > n_before {
            break;
        }
    }
    let dashes = rest.iter().position(|word| word.text == "--");
    found.extend(dashes.map(|at| Beginning {
        at: at + 1,
        is_certain: false,
    }));
    found
}

fn is_option(text: &str) -> bool {
    text.len() > 1 && text.starts_with('-')
}

/// Whether an option is known not to take the next word.
fn has_no_value(name: &str, option: &str) -> bool {
    option.contains('=') || holds(FLAGS, option) || holds(of_runner(OWN_FLAGS, name), option)
}

/// What a table has for a runner.
fn of_runner(table: &[(&str, &'static str)], name: &str) -> &'static str {
    let mut rows = table.iter();
    let row = rows.find(|(names, _)| holds(names, name));
    row.map_or("", |(_, options)| options)
}

fn holds(list: &str, word: &str) -> bool {
    list.split(' ').any(|known| known == word)
}

/// What `words` run, if they can be a command.
fn inner(name: &str, words: &[Value], is_certain: bool) -> Option<WrappedCommand> {
    let (first, rest) = words.split_first()?;
    if has_space(first) {
        let is_text = SHELL_RUNNERS.contains(&name);
        return is_text.then(|| WrappedCommand::Text(first.clone()));
    }
    if !first.is_name || first.text.starts_with('-') {
        return None;
    }
    // `hatch run ENVIRONMENT:PROGRAM`.
    let program = match first.text.rsplit_once(':') {
        Some((_, program)) if name == "hatch" => first.part(program),
        _ => first.clone(),
    };
    let words = [&[program], rest].concat();
    Some(match is_certain {
        true => WrappedCommand::Within(words),
        false => WrappedCommand::Guess(words),
    })
}

/// The program that pnpm runs for a word that is none of its subcommands.
fn of_fallback(name: &str, arguments: &[Value]) -> Option<Look> {
    if name != "pnpm" {
        return None;
    }
    // What stands behind `--` is for the script.
    let own = arguments.split(|word| word.text == "--").next()?;
    let beginnings = beginnings(name, own, 0);
    let unknown = (beginnings.len() >= GUESSES_MAX).then_some(UNREADABLE);
    let rests = beginnings.into_iter();
    let rests = rests.filter_map(|beginning| arguments.get(beginning.at..));
    let is_own = |rest: &&[Value]| rest.first().is_some_and(|word| holds(PNPM, &word.text));
    let rests = rests.take_while(|rest| !is_own(rest));
    Some(Look {
        inner: rests.filter_map(|rest| inner(name, rest, false)).collect(),
        unknown,
        ..Look::nothing()
    })
}

/// What stands behind `--` of a program that no table knows and that is told to run something.
fn of_unknown(name: &str, arguments: &[Value]) -> Option<Look> {
    let dashes = arguments.iter().position(|word| word.text == "--")?;
    let (own, command) = arguments.split_at(dashes);
    let runs = own.iter().any(|word| RUNS.contains(&word.text.as_str()));
    let is_for_its_own = holds(FOR_THEIR_OWN, name);
    let inner = inner(name, command.get(1..)?, false).filter(|_| runs && !is_for_its_own)?;
    Some(Look {
        inner: vec![inner],
        ..Look::nothing()
    })
}

fn has_space(word: &Value) -> bool {
    word.text.contains(char::is_whitespace)
}
