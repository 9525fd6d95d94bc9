//! What is on the list under every name, and what ordinary work touches.

use std::path::Path;

use super::{ANYWHERE, HOME, KEPT_BY_TOOLS, WHERE_PRESENT, name_from, name_of, spells};

fn of(path: &str) -> Option<&'static str> {
    name_of(Path::new(path))
}

#[test]
fn every_class_of_obeyed_file_is_on_the_list() {
    for (path, name) in [
        (".git/hooks/pre-commit", ".git"),
        ("sub/.git", ".git"),
        (".git/config", ".git"),
        (".git/modules/a/hooks/x", ".git"),
        (".vscode/tasks.json", ".vscode"),
        ("a/b/.idea/x.xml", ".idea"),
        ("my.code-workspace", "*.code-workspace"),
        (".npmrc", ".npmrc"),
        (".yarnrc.yml", ".yarnrc*"),
        (".yarnrc", ".yarnrc*"),
        ("web/.yarn/releases/yarn.cjs", ".yarn/releases"),
        ("lefthook.yml", "lefthook.*"),
        ("lefthook-local.yaml", "lefthook-local.*"),
        (".pre-commit-config.yaml", ".pre-commit-config.y*ml"),
        (".exrc", ".exrc"),
        (".mise.toml", ".mise*.toml"),
        ("mise.local.toml", "mise*.toml"),
        (".husky/_/h", ".husky"),
        (".envrc", ".envrc"),
        (".cargo/config.toml", ".cargo/config.toml"),
        ("prek.toml", "prek.toml"),
        ("web/lint-staged.config.mjs", "lint-staged.config.*"),
        ("commitlint.config.ts", "commitlint.config.*"),
        ("bunfig.toml", "bunfig.toml"),
        ("opencode.jsonc", "opencode.json*"),
        (".crush.json", ".crush.json"),
        (".amazonq/mcp.json", ".amazonq"),
        (".vs/tasks.vs.json", ".vs"),
        (".github/hooks/x.json", ".github/hooks"),
        (".qwen/settings.json", ".qwen"),
        (".factory/settings.json", ".factory"),
        (".junie/mcp/mcp.json", ".junie/mcp"),
        (".trae/mcp.json", ".trae"),
        (".theia/tasks.json", ".theia"),
        (".externalToolBuilders/x.launch", ".externaltoolbuilders"),
        (".perldb", ".perldb"),
        (".rdbgrc", ".rdbgrc"),
        (".byebugrc", ".byebugrc"),
        (".rvmrc", ".rvmrc"),
        ("lib/.merlin", ".merlin"),
        (".bashrc", ".bashrc"),
        (".config/fish/config.fish", ".config/fish"),
        (".local/bin/ls", ".local/bin"),
    ] {
        assert_eq!(of(path), Some(name), "{path}");
    }
}

#[test]
fn spellings_that_a_file_system_may_take_for_the_name_are_the_name() {
    for path in [
        ".GIT/Hooks/x",
        "git~1/config",
        ".g\u{200c}it/config",
        ".VSCode/tasks.json",
        ".v\u{17f}code/x",
        ".hus\u{212a}y/x",
        ".con\u{fb01}g/autostart/x",
        ".ENVRC",
    ] {
        assert!(of(path).is_some(), "{path:?}");
    }
}

#[test]
fn ordinary_files_are_not_on_the_list() {
    for path in [
        "src/main.rs",
        "Makefile",
        "package.json",
        "conftest.py",
        ".github/workflows/ci.yml",
        ".gitignore",
        ".gitattributes",
        ".git/info/exclude",
        ".editorconfig",
        ".eslintrc.json",
        ".cargo",
        ".cargo/audit.toml",
        ".config/nextest.toml",
        "docs/.bashrc",
        "src/bin/x",
        "rust-toolchain.toml",
        ".nvmrc",
        "vscode/x",
        "promise.toml",
        "AGENTS.md",
        ".gradle/caches/x",
    ] {
        assert_eq!(of(path), None, "{path}");
    }
}

#[test]
fn what_a_name_begins_with_leads_to_it() {
    for (path, expect) in [
        (".cargo", true),
        ("a/.yarn", true),
        (".config", true),
        ("a/.local", false),
        (".cargo/config.toml", false),
        ("src", false),
    ] {
        assert_eq!(name_from(Path::new(path)).is_some(), expect, "{path}");
    }
}

#[test]
fn a_rule_spells_the_name_or_does_not() {
    for (rule, name, expect) in [
        ("write:.vscode/*", ".vscode", true),
        (".vscode", ".vscode", true),
        ("/w/{.envrc,x}", ".envrc", true),
        ("**/.envrc", ".envrc", true),
        ("*", ".vscode", false),
        ("/w/*", ".git", false),
        (".github/*", ".git", false),
        (".git/hooks/*", ".git", true),
        ("*.code-workspace", "*.code-workspace", true),
        (".yarnrc.yml", ".yarnrc*", true),
        ("src/**", ".yarnrc*", false),
        (".mise.toml", ".mise*.toml", true),
    ] {
        assert_eq!(spells(rule, name), expect, "{rule} {name}");
    }
}

#[test]
fn names_are_written_as_they_are_compared() {
    let all = ANYWHERE.iter().chain(&WHERE_PRESENT);
    for name in all.chain(&KEPT_BY_TOOLS).chain(&HOME) {
        assert_eq!(super::fold(name), **name, "{name}");
        assert!(name.split('/').all(|part| part.matches('*').count() <= 1));
    }
}
