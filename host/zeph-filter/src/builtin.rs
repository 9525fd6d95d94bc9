//! The built-in rules, embedded. The order is the order they act in.
//!
//! Each stands alone in a file of its name. Reading them all takes longer than filtering an output: with each stands what the
//! commands it is for begin with, so that only the files are read that a command needs.

macro_rules! rules {
    ($($name:literal [$($start:literal)*])*) => {
        /// Every built-in rule file with its name.
        pub static BUILTIN: &[(&str, &str)] = &[$((
            concat!("filters/rules/", $name, ".toml"),
            include_str!(concat!("../../../filters/rules/", $name, ".toml")),
        ),)*];

        /// The rule of each file, and what the commands it is for begin with.
        const RULES: &[(&str, &[&str])] = &[$(($name, &[$($start),*]),)*];
    };
}

rules! {
    "cargo-build" ["cargo"]
    "cargo-test" ["cargo"]
    "cargo-clippy" ["cargo"]
    "git-status" ["git"]
    "git-diff" ["git"]
    "git-log" ["git"]
    "git-push" ["git"]
    "ls" ["ls" "tree"]
    "log-dedup" ["journalctl" "tail" "docker" "podman" "kubectl" "oc" "stern" "cat" "head" "less"]
    "docker-build" ["docker" "podman"]
    "docker-compose" ["docker"]
    "npm-install" ["npm" "yarn" "pnpm" "bun"]
    "pip-install" ["pip" "uv"]
    "cmake" ["cmake" "ninja" "make" "gmake" "meson"]
    "make" ["make" "gmake" "bmake" "ninja" "cmake" "meson"]
    "ctest" ["ctest"]
    "pytest" ["pytest" "py" "tox" "nox" "just" "invoke" "hatch"]
    "python-test" ["unittest" "python"]
    "ruby-test" ["rspec" "rake" "rails" "ruby" "minitest" "m"]
    "rubocop" ["rubocop" "standardrb" "golangci-lint" "shellcheck" "stylelint" "hlint" "swiftlint"]
    "go-test" ["go"]
    "terraform-plan" ["terraform" "tofu"]
    "kubectl-get" ["kubectl" "oc"]
    "brew-install" ["brew"]
    "cargo-check" ["cargo"]
    "tsc" ["tsc" "vue-tsc"]
    "eslint" ["eslint" "biome" "oxlint" "standard" "npm" "yarn" "pnpm"]
    "js-test" ["jest" "vitest" "mocha" "ava" "npm" "yarn" "pnpm" "bun" "node"]
    "python-lint" ["ruff" "mypy" "pylint" "flake8" "pyright" "basedpyright"]
    "apt" ["apt" "apt-get" "aptitude"]
    "find" ["find" "fd" "fdfind"]
    "grep-rg" ["grep" "egrep" "rg" "ag" "git"]
    "gradle-maven" ["gradle" "gradlew" "mvn" "mvnw"]
    "curl-wget" ["curl" "wget"]
    "du-df-ps" ["du" "df" "ps"]
}

/// Whether a built-in rule has this name.
pub(crate) fn is_name(name: &str) -> bool {
    RULES.iter().any(|(known, _)| *known == name)
}

/// What the commands begin with that the rule of a file is for; `None` when every command may be one.
pub(crate) fn starts(rule: &str) -> Option<&'static [&'static str]> {
    let known = RULES.iter().find(|(name, _)| *name == rule);
    known.map(|(_, starts)| *starts)
}
