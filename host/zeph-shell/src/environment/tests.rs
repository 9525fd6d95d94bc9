use super::*;

fn made(host: &[(&str, &str)], network: Network) -> BTreeMap<String, String> {
    let own = |text: &&str| (*text).to_owned();
    let policy = EnvironmentPolicy {
        host: host
            .iter()
            .map(|(name, value)| (own(name), own(value)))
            .collect(),
        blocked: vec!["RUST_".to_owned()],
        allowed: vec!["MY_TOKEN".to_owned(), "LD_PRELOAD".to_owned()],
        caches: vec![("CARGO_TARGET_DIR".to_owned(), "target".to_owned())],
    };
    let visible = [PathBuf::from("/usr"), PathBuf::from("/home/u/.cargo/bin")];
    make(
        &policy,
        Surroundings {
            home: Path::new("/home/u"),
            network,
            visible: Some(&visible),
        },
    )
}

#[test]
fn only_what_is_known_and_harmless_passes() {
    for (name, value, passes) in [
        ("LANG", "de_DE.UTF-8", true),
        ("LC_TIME", "C", true),
        ("CC", "clang", true),
        ("TZ", "UTC", true),
        ("GIT_SSL_CAINFO", "/etc/ssl/x", true),
        ("MY_TOKEN", "sk-123", true),
        ("SOMETHING", "1", false),
        ("AWS_ACCESS_KEY_ID", "AKIA1", false),
        ("CFLAGS", "AKIA1", false),
        ("PIP_FIND_LINKS", "https://u:p@h/simple", false),
        ("PIP_FIND_LINKS", "https://h/a@b", true),
        ("LD_PRELOAD", "/x.so", false),
        ("BASH_ENV", "/x", false),
        ("BASH_FUNC_ls%%", "() { :; }", false),
        ("GIT_SSH_COMMAND", "x", false),
        ("SSH_AUTH_SOCK", "/run/agent", false),
        ("RUST_LOG", "debug", false),
        ("HTTPS_PROXY", "http://proxy", false),
        ("LC_A\0B", "1", false),
    ] {
        let variables = made(&[(name, value)], Network::Loopback);
        let got = variables.get(name).map(String::as_str);
        assert_eq!(got, passes.then_some(value), "{name}={value}");
    }
    let open = made(
        &[
            ("HTTPS_PROXY", "http://proxy"),
            ("HTTP_PROXY", "http://u:p@proxy"),
        ],
        Network::Open,
    );
    assert!(open.contains_key("HTTPS_PROXY") && !open.contains_key("HTTP_PROXY"));
}

/// What the host sets for its own git does not count the settings of commands.
#[test]
fn git_does_its_housekeeping_in_the_foreground() {
    let host = [
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "core.pager"),
        ("GIT_CONFIG_VALUE_0", "x"),
        ("GIT_CONFIG_KEY_2", "core.pager"),
    ];
    let variables = made(&host, Network::Open);
    let told = variables.iter();
    let told = told.filter(|(name, _)| name.starts_with("GIT_CONFIG_"));
    let told: Vec<(&str, &str)> = told
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("GIT_CONFIG_COUNT", "2"),
            ("GIT_CONFIG_KEY_0", "gc.autoDetach"),
            ("GIT_CONFIG_KEY_1", "maintenance.autoDetach"),
            ("GIT_CONFIG_VALUE_0", "false"),
            ("GIT_CONFIG_VALUE_1", "false"),
        ]
    );
}

#[test]
fn the_search_path_leads_nowhere_outside() {
    let path = "/home/u/.cargo/bin:.:/home/u/bin:/usr/bin:/usr/../home/u/bin::/usr/bin:/sbin/..";
    let variables = made(&[("PATH", path), ("HOME", "/elsewhere")], Network::Loopback);
    assert_eq!(
        variables["PATH"],
        "/home/u/.cargo/bin:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin"
    );
    assert_eq!(variables["HOME"], "/home/u");
    assert_eq!(variables["TERM"], "dumb");
}

#[test]
fn package_managers_know_that_there_is_no_network() {
    let alone = made(&[], Network::Loopback);
    let open = made(&[], Network::Open);
    for (name, value) in OFFLINE {
        assert_eq!(alone.get(name).map(String::as_str), Some(value), "{name}");
        assert_eq!(open.get(name), None, "{name}");
    }
    for needed in [
        "npm_config_offline",
        "PIP_NO_INDEX",
        "YARN_ENABLE_NETWORK",
        "GOPROXY",
    ] {
        assert!(alone.contains_key(needed), "{needed}");
    }
    // What the user set for a machine with a network is not what holds here.
    assert_eq!(
        made(&[("PIP_NO_INDEX", "0")], Network::Loopback)["PIP_NO_INDEX"],
        "1"
    );
    assert_eq!(
        made(&[("PIP_NO_INDEX", "0")], Network::Open)["PIP_NO_INDEX"],
        "0"
    );
}

#[test]
fn a_way_out_to_hosts_is_no_network_of_the_host() {
    let host = [
        ("HTTPS_PROXY", "http://proxy.corp"),
        ("GOPROXY", "https://proxy.example.org"),
        ("PIP_INDEX_URL", "https://u:p@example.org/simple"),
    ];
    let hosts = made(&host, Network::Hosts);
    for (name, _) in OFFLINE {
        assert!(name == "GOPROXY" || !hosts.contains_key(name), "{name}");
    }
    assert_eq!(hosts.get("HTTPS_PROXY"), None);
    assert_eq!(hosts["GOPROXY"], "https://proxy.example.org");
    assert_eq!(hosts.get("PIP_INDEX_URL"), None);
    assert_eq!(hosts["NO_PROXY"], "localhost,127.0.0.1,::1");
    assert_eq!(hosts["CARGO_HOME"], "/home/u/.cache/cargo");
    let told = of_outlet("0123");
    let starts = |name: &str| {
        told.iter()
            .any(|(before, _)| before.starts_with(name.as_bytes()))
    };
    for name in [
        "HTTPS_PROXY=",
        "https_proxy=",
        "http_proxy=",
        "ALL_PROXY=",
        "YARN_HTTPS_PROXY=",
    ] {
        assert!(starts(name), "{name}");
    }
}
