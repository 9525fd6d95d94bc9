//! The built-in rules, embedded. The order is the order they act in.

macro_rules! rules {
    ($($name:literal)*) => {
        /// Every built-in rule file with its name.
        pub static BUILTIN: &[(&str, &str)] = &[$((
            concat!("filters/rules/", $name, ".toml"),
            include_str!(concat!("../../../filters/rules/", $name, ".toml")),
        ),)*];

        const NAMES: &[&str] = &[$($name),*];
    };
}

rules! {
    "cargo-build" "cargo-test" "cargo-clippy" "git-status" "git-diff" "git-log" "git-push" "ls" "log-dedup" "docker-build"
    "docker-compose" "npm-install" "pip-install" "cmake" "make" "ctest" "pytest" "python-test" "ruby-test" "rubocop" "go-test" "terraform-plan" "kubectl-get" "brew-install"
    "cargo-check" "tsc" "eslint" "js-test" "python-lint" "apt" "find" "grep-rg" "gradle-maven" "curl-wget" "du-df-ps"
}

/// Whether a built-in rule has this name. A rule stands alone in the file named after it.
pub(crate) fn is_name(name: &str) -> bool {
    NAMES.contains(&name)
}
