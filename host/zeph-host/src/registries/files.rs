//! The settings of package managers, read for addresses. What cannot be read says nothing.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::Places;

/// Most bytes of a file of settings.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

fn read(path: &Path) -> String {
    let mut text = String::new();
    if path.is_file()
        && let Ok(file) = File::open(path)
        && file.take(FILE_BYTES_MAX).read_to_string(&mut text).is_err()
    {
        text.clear();
    }
    text
}

/// The values of `key = value`, `key: value` or `key value` whose key `fits`, without quotes.
fn values(path: &Path, fits: impl Fn(&str) -> bool) -> Vec<String> {
    let pairs = pairs(path).into_iter();
    pairs
        .filter(|(key, _)| fits(key))
        .map(|(_, value)| value)
        .collect()
}

/// Keys with their values, as in [`values`].
fn pairs(path: &Path) -> Vec<(String, String)> {
    let text = read(path);
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with(['#', ';']));
    let pairs = lines.filter_map(|line| {
        let line = line.trim();
        let end = line.find(|c: char| c == '=' || c.is_whitespace() || line_is_yaml(line, c))?;
        let key = line[..end].trim_matches('"').trim_end_matches(':');
        let value = line[end..].trim_start_matches(['=', ':', ' ', '\t']);
        let value = value.trim().trim_matches(['"', '\'']);
        Some((key.to_owned(), value.to_owned()))
    });
    pairs.filter(|(_, value)| !value.is_empty()).collect()
}

/// Whether a colon ends the key: not where it belongs to it, as in `@scope:registry=`.
fn line_is_yaml(line: &str, c: char) -> bool {
    c == ':' && !line.starts_with('@') && !line.contains('=')
}

fn table(path: &Path) -> Table {
    read(path).parse().unwrap_or_default()
}

fn texts<'a>(tables: impl IntoIterator<Item = &'a Value>, key: &str) -> Vec<String> {
    let found = tables.into_iter().filter_map(|one| one.get(key)?.as_str());
    found.map(str::to_owned).collect()
}

/// Cargo's files, the nearest first.
fn cargo_files(places: &Places) -> Vec<Table> {
    let home = places.variables(&["CARGO_HOME"]).pop();
    let home = home.map_or_else(|| places.home_file(".cargo"), PathBuf::from);
    let project = places.project_files(".cargo");
    project
        .chain([home])
        .flat_map(|folder| [folder.join("config.toml"), folder.join("config")])
        .map(|path| table(&path))
        .filter(|table| !table.is_empty())
        .collect()
}

/// What crates.io is replaced by.
pub(super) fn cargo_replacement(places: &Places) -> Vec<String> {
    let files = cargo_files(places);
    let sources = || {
        files
            .iter()
            .filter_map(|file| file.get("source")?.as_table())
    };
    let of_variable = places.variables(&["CARGO_SOURCE_CRATES_IO_REPLACE_WITH"]);
    let replaced = || {
        let mut named = sources().filter_map(|source| source.get("crates-io"));
        named.find_map(|source| Some(source.get("replace-with")?.as_str()?.to_owned()))
    };
    let Some(name) = of_variable.into_iter().next().or_else(replaced) else {
        return Vec::new();
    };
    let source = sources().filter_map(|all| all.get(&name));
    let registries = files
        .iter()
        .filter_map(|file| file.get("registries")?.get(&name));
    let variable = name.to_uppercase().replace('-', "_");
    let names = [
        format!("CARGO_SOURCE_{variable}_REGISTRY"),
        format!("CARGO_REGISTRIES_{variable}_INDEX"),
    ];
    let mut found = places.variables(&names.each_ref().map(String::as_str));
    found.extend(texts(source, "registry"));
    found.extend(texts(registries, "index"));
    found
}

/// Registries besides crates.io.
pub(super) fn cargo_registries(places: &Places) -> Vec<String> {
    let files = cargo_files(places);
    let named = files
        .iter()
        .filter_map(|file| file.get("registries")?.as_table())
        .flat_map(Table::values);
    let mut found = texts(named, "index");
    let of_variables = places
        .env
        .iter()
        .filter(|(name, _)| name.starts_with("CARGO_REGISTRIES_") && name.ends_with("_INDEX"));
    found.extend(of_variables.map(|(_, value)| value.clone()));
    found
}

/// Files of npm and pnpm, the nearest first.
fn npm_files(places: &Places) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = places.project_files(".npmrc").collect();
    let named = ["NPM_CONFIG_USERCONFIG", "npm_config_userconfig"];
    files.extend(places.variables(&named).into_iter().map(PathBuf::from));
    files.push(places.home_file(".npmrc"));
    files.push(places.home_file(".config/pnpm/rc"));
    files
}

/// All settings of npm's files, the nearest first.
pub(super) fn npm_pairs(places: &Places) -> Vec<(String, String)> {
    let files = npm_files(places);
    files.iter().flat_map(|path| pairs(path)).collect()
}

pub(super) fn npm_registry(places: &Places) -> Vec<String> {
    let mut found = places.variables(&["npm_config_registry", "NPM_CONFIG_REGISTRY"]);
    let files = npm_files(places);
    found.extend(
        files
            .iter()
            .flat_map(|path| values(path, |key| key == "registry")),
    );
    found.truncate(1);
    found
}

/// Registries of single scopes.
pub(super) fn npm_scopes(places: &Places) -> Vec<String> {
    let is_scope = |key: &str| key.starts_with('@') && key.ends_with(":registry");
    let files = npm_files(places);
    files
        .iter()
        .flat_map(|path| values(path, is_scope))
        .collect()
}

pub(super) fn yarn_registry(places: &Places) -> Vec<String> {
    let mut found = places.variables(&["YARN_NPM_REGISTRY_SERVER"]);
    let homes = [".yarnrc.yml", ".yarnrc"].map(|name| places.home_file(name));
    let project = places
        .project_files(".yarnrc.yml")
        .chain(places.project_files(".yarnrc"));
    let is_registry = |key: &str| key == "npmRegistryServer" || key == "registry";
    found.extend(
        project
            .chain(homes)
            .flat_map(|path| values(&path, is_registry)),
    );
    if found.is_empty() {
        found = npm_registry(places);
    }
    found
}

/// Files of pip, those that go before others first.
fn pip_files(places: &Places) -> Vec<PathBuf> {
    let named = places.variables(&["PIP_CONFIG_FILE"]).into_iter();
    let homes = [".config/pip/pip.conf", ".pip/pip.conf"].map(|name| places.home_file(name));
    named
        .map(PathBuf::from)
        .chain(homes)
        .chain([PathBuf::from("/etc/pip.conf")])
        .collect()
}

fn uv_tables(places: &Places) -> Vec<Table> {
    let own = places.project_files("uv.toml").map(|path| table(&path));
    let of_project = places.project_files("pyproject.toml").filter_map(|path| {
        let tool = table(&path).remove("tool")?;
        tool.get("uv")?.as_table().cloned()
    });
    let home = table(&places.home_file(".config/uv/uv.toml"));
    own.chain(of_project).chain([home]).collect()
}

/// What takes the place of PyPI, whose files lie at another host than its index: so nothing is left out of what is set.
pub(super) fn python_index(places: &Places) -> Vec<String> {
    let mut found = places.variables(&["PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"]);
    let files = pip_files(places);
    found.extend(
        files
            .iter()
            .flat_map(|path| values(path, |key| key == "index-url")),
    );
    let uv = uv_tables(places);
    let of_uv = uv
        .iter()
        .filter_map(|table| table.get("index-url")?.as_str());
    found.extend(of_uv.map(str::to_owned));
    found
}

pub(super) fn python_more(places: &Places) -> Vec<String> {
    let names = ["PIP_EXTRA_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_INDEX"];
    let mut lists = places.variables(&names);
    let files = pip_files(places);
    let is_more = |key: &str| key == "extra-index-url";
    lists.extend(files.iter().flat_map(|path| values(path, is_more)));
    for table in uv_tables(places) {
        let indexes = table.get("index").and_then(Value::as_array);
        lists.extend(texts(indexes.into_iter().flatten(), "url"));
    }
    // Each may be `name=address`.
    let words = lists.iter().flat_map(|list| list.split_whitespace());
    words
        .map(|word| match word.split_once("=http") {
            Some((_, rest)) => format!("http{rest}"),
            None => word.to_owned(),
        })
        .collect()
}

/// The proxies, and the database of checksums where it is another one.
pub(super) fn go_proxy(places: &Places) -> Vec<String> {
    const CHECKSUMS: &str = "https://sum.golang.org";
    let file = places.home_file(".config/go/env");
    let said = |name: &str| {
        let of_variable = places.variables(&[name]).pop();
        of_variable.or_else(|| values(&file, |key| key == name).pop())
    };
    let Some(proxies) = said("GOPROXY") else {
        return Vec::new();
    };
    let mut found: Vec<String> = proxies.split([',', '|']).map(str::to_owned).collect();
    match said("GOSUMDB").as_deref() {
        None | Some("sum.golang.org") => found.push(CHECKSUMS.to_owned()),
        Some("off") => {}
        Some(other) => {
            let host = other.split(['+', ' ']).next().unwrap_or_default();
            found.push(format!("https://{host}"));
        }
    }
    found
}

/// Sources in a list, and mirrors of Bundler.
pub(super) fn gem_sources(places: &Places) -> Vec<String> {
    let text = read(&places.home_file(".gemrc"));
    let items = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- "));
    let mut found: Vec<String> = items.map(|item| item.trim().to_owned()).collect();
    let is_mirror = |name: &str| name.starts_with("BUNDLE_MIRROR");
    let mirrors = places.env.iter().filter(|(name, _)| is_mirror(name));
    found.extend(mirrors.map(|(_, value)| value.clone()));
    found.extend(values(&places.home_file(".bundle/config"), is_mirror));
    found
}

fn maven_urls(places: &Places, element: &str) -> Vec<String> {
    let text = read(&places.home_file(".m2/settings.xml"));
    let (open, close) = (format!("<{element}>"), format!("</{element}>"));
    let parts = text.split(&open).skip(1);
    let parts = parts.filter_map(|part| part.split(&close).next());
    let urls = parts.filter_map(|part| part.split("<url>").nth(1)?.split('<').next());
    urls.map(str::to_owned).collect()
}

pub(super) fn maven_mirrors(places: &Places) -> Vec<String> {
    maven_urls(places, "mirror")
}

pub(super) fn maven_repositories(places: &Places) -> Vec<String> {
    let elements = ["repository", "pluginRepository"];
    elements
        .iter()
        .flat_map(|element| maven_urls(places, element))
        .collect()
}
