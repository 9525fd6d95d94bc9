use std::fs;

use super::*;

fn found(files: &[(&str, &str)], env: &[(&str, &str)], programs: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let set = [("PIP_CONFIG_FILE", "/dev/null")];
    let env = set.iter().chain(env);
    let places = Places {
        env: env
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        home: folder.path().join("home"),
        project: vec![folder.path().join("work")],
    };
    let programs = programs.iter().map(|&name| name.to_owned()).collect();
    let hosts = hosts(&places, &programs).0;
    let quoted: Vec<String> = hosts.iter().map(|host| format!("\"{host}\"")).collect();
    format!("allow_hosts = [{}]\n", quoted.join(", "))
}

#[test]
fn managers_that_are_there_have_their_usual_hosts() {
    assert_eq!(found(&[], &[], &[]), "allow_hosts = []\n");
    assert_eq!(
        found(&[], &[], &["cargo", "npm", "go"]),
        "allow_hosts = [\"index.crates.io\", \"proxy.golang.org\", \"registry.npmjs.org\", \"static.crates.io\", \"sum.golang.org\"]\n"
    );
}

#[test]
fn what_is_configured_takes_the_place_of_the_usual_host() {
    for (files, env, program, expect) in [
        (
            &[(
                "home/.cargo/config.toml",
                "[source.crates-io]\nreplace-with = \"corp\"\n[source.corp]\nregistry = \"sparse+https://crates.example.org:8443/index/\"",
            )][..],
            &[][..],
            "cargo",
            "crates.example.org:8443",
        ),
        (
            &[(
                "home/.npmrc",
                "//npm.example.org/:_authToken=hush\nregistry=https://npm.example.org/",
            )],
            &[],
            "npm",
            "npm.example.org",
        ),
        (
            &[("work/.npmrc", "registry = http://npm.example.net/")],
            &[],
            "npm",
            "npm.example.net:80",
        ),
        (
            &[(
                "home/.yarnrc.yml",
                "npmRegistryServer: \"https://yarn.example.org\"\n",
            )],
            &[],
            "yarn",
            "yarn.example.org",
        ),
        (
            &[("home/.yarnrc", "registry \"https://yarn.example.net\"\n")],
            &[],
            "yarn",
            "yarn.example.net",
        ),
        (
            &[(
                "home/.pip/pip.conf",
                "[global]\nindex-url = https://u:hush@pip.example.org/simple\n",
            )],
            &[],
            "pip",
            "pip.example.org",
        ),
        (
            &[(
                "home/.config/uv/uv.toml",
                "index-url = \"https://uv.example.org/simple\"",
            )],
            &[],
            "uv",
            "uv.example.org",
        ),
        (
            &[(
                "home/.config/go/env",
                "GOPROXY=https://go.example.org,direct\nGOSUMDB=off\n",
            )],
            &[],
            "go",
            "go.example.org",
        ),
        (
            &[],
            &[
                ("GOPROXY", "https://go.example.net|direct"),
                ("GOSUMDB", "off"),
            ],
            "go",
            "go.example.net",
        ),
        (
            &[("home/.gemrc", ":sources:\n- https://gems.example.org/\n")],
            &[],
            "gem",
            "gems.example.org",
        ),
        (
            &[(
                "home/.m2/settings.xml",
                "<settings><mirrors><mirror><id>a</id><url>https://maven.example.org/all</url></mirror></mirrors></settings>",
            )],
            &[],
            "mvn",
            "maven.example.org",
        ),
        (
            &[],
            &[("PIP_INDEX_URL", "https://pip.example.net/simple")],
            "pip3",
            "pip.example.net",
        ),
    ] {
        let line = found(files, env, &[program]);
        assert_eq!(line, format!("allow_hosts = [\"{expect}\"]\n"), "{program}");
        assert!(!line.contains("hush"));
    }
}

#[test]
fn what_is_used_besides_is_added() {
    let line = found(
        &[
            ("home/.npmrc", "@corp:registry=https://npm.example.org/\n"),
            (
                "work/.cargo/config.toml",
                "[registries.corp]\nindex = \"https://crates.example.org/git\"",
            ),
        ],
        &[(
            "UV_INDEX",
            "corp=https://uv.example.org/simple https://uv.example.net/",
        )],
        &["npm", "cargo", "uv"],
    );
    for host in [
        "npm.example.org",
        "crates.example.org",
        "uv.example.org",
        "uv.example.net",
    ] {
        assert!(line.contains(&format!("\"{host}\"")), "{line}");
    }
    for usual in ["registry.npmjs.org", "index.crates.io", "pypi.org"] {
        assert!(line.contains(usual), "{line}");
    }
}

#[test]
fn files_that_cannot_be_read_say_nothing() {
    let line = found(
        &[
            ("home/.cargo/config.toml", "[[["),
            ("home/.npmrc", "registry=\nregistry\n=x\n\u{0}"),
            ("home/.m2/settings.xml", "<mirror><url>"),
            ("home/.pip/pip.conf", "index-url = file:///srv/simple\n"),
        ],
        &[],
        &["cargo", "npm", "mvn"],
    );
    for usual in ["index.crates.io", "registry.npmjs.org"] {
        assert!(line.contains(usual), "{line}");
    }
}

fn registries(files: &[(&str, &str)], env: &[(&str, &str)], program: &str) -> Registries {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let set = [("PIP_CONFIG_FILE", "/dev/null")];
    let env = set.iter().chain(env);
    let places = Places {
        env: env
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        home: folder.path().to_owned(),
        project: Vec::new(),
    };
    Registries::of(program, &places)
}

#[test]
fn logins_of_npm_are_for_their_registries_and_stay_out_of_variables() {
    let npmrc = "registry=https://npm.example.com/all/\n@team:registry=https://team.example.com:8443/\n\
                 //npm.example.com/all/:_authToken=${NPM_TOKEN}\n//team.example.com:8443/:username=ada\n\
                 //team.example.com:8443/:_password=c2VjcmV0\n//other.example.com/:_authToken=of-another\n_authToken=of-none\n";
    let found = registries(&[(".npmrc", npmrc)], &[("NPM_TOKEN", "tok-1")], "npm");
    let logins: Vec<(&str, &str)> = found
        .logins
        .iter()
        .map(|login| (login.host.as_str(), login.authorization.as_str()))
        .collect();
    assert_eq!(
        logins,
        [
            ("npm.example.com", "Bearer tok-1"),
            ("team.example.com:8443", "Basic YWRhOnNlY3JldA==")
        ]
    );
    let variables = [
        ("npm_config_registry", "https://npm.example.com/all/"),
        (
            "npm_config_@team:registry",
            "https://team.example.com:8443/",
        ),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(found.variables, variables);
    assert!(!format!("{found:?}").contains("tok-1"), "{found:?}");
}

#[test]
fn logins_of_python_indexes_are_taken_out_of_their_addresses() {
    let url = "https://ada:p%40ss@pip.example.com/simple";
    let found = registries(&[], &[("PIP_INDEX_URL", url)], "pip");
    let [login] = found.logins.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(login.host, "pip.example.com");
    assert_eq!(login.authorization, "Basic YWRhOnBAc3M=");
    assert_eq!(found.hosts.len(), 1, "{found:?}");
    let usual = registries(&[], &[("PIP_INDEX_URL", "https://pypi.org/simple")], "pip");
    assert!(usual.hosts.contains("files.pythonhosted.org"), "{usual:?}");
    assert!(login.secrets.contains(&"p@ss".to_owned()));
    let bare = "https://pip.example.com/simple".to_owned();
    assert_eq!(
        found.variables,
        [
            ("PIP_INDEX_URL".to_owned(), bare.clone()),
            ("UV_DEFAULT_INDEX".to_owned(), bare)
        ]
    );
}
