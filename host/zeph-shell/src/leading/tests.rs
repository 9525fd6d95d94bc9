//! Variables that lead, and ordinary ones.

use super::{is_generic, leads};

#[test]
fn families_lead_by_name_and_value() {
    let leading = [
        ("HOME", "evil"),
        ("XDG_CONFIG_HOME", "evil"),
        ("RIPGREP_CONFIG_PATH", "rc"),
        ("CARGO_BUILD_RUSTC", "evil"),
        ("CARGO_BUILD_RUSTC_WRAPPER", "evil"),
        ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", "evil"),
        ("CARGO_ALIAS_B", "publish"),
        ("CARGO_HOME", "x"),
        ("RUSTFLAGS", "-C linker=./evil"),
        ("RUSTFLAGS", "-Clinker=evil"),
        ("CFLAGS", "-fplugin=./evil.so"),
        ("CFLAGS", "-B./evil"),
        ("CFLAGS", "-wrapper sh,-c"),
        ("GOFLAGS", "-toolexec=evil"),
        ("CC", "./evil"),
        ("CC", "gcc -wrapper x"),
        ("MAKEFILES", "evil"),
        ("MAKEFLAGS", "--eval=x"),
        ("NODE_OPTIONS", "-r ./evil.js"),
        ("NODE_OPTIONS", "--import=evil"),
        ("npm_config_script_shell", "evil"),
        ("NPM_CONFIG_USERCONFIG", "x"),
        ("PIP_CONFIG_FILE", "x"),
        ("PIP_INDEX_URL", "http://evil/"),
        ("PYTEST_ADDOPTS", "-pevil"),
        ("PYTHONSTARTUP", "x"),
        ("KUBECONFIG", "x"),
        ("AWS_CONFIG_FILE", "x"),
        ("DOCKER_CONFIG", "x"),
        ("LESS", "-kevil"),
        ("LESS", "+!evil"),
        ("GIT_DIR", "x"),
        ("GIT_CONFIG_GLOBAL", "x"),
        ("BASH_ENV", "1"),
        ("LD_PRELOAD", "x"),
        ("ZIPOPT", "-TT evil"),
        ("JAVA_HOME", "./evil"),
        ("OPENSSL_CONF", "x"),
        ("CMAKE_C_COMPILER_LAUNCHER", "evil"),
        ("COMPOSE_FILE", "x"),
        ("http_proxy", "evil"),
        ("HTTPS_PROXY", "http://evil:80"),
        ("ALL_PROXY", "socks5://evil"),
    ];
    for (name, value) in leading {
        assert!(leads(name, value), "{name}={value}");
    }
}

#[test]
fn ordinary_variables_lead_nowhere() {
    let ordinary = [
        ("FOO", "/x"),
        ("no_proxy", "localhost"),
        ("http_proxy", ""),
        ("NODE_ENV", "test"),
        ("NODE_OPTIONS", "--max-old-space-size=4096"),
        ("RUST_LOG", "debug,hyper=info"),
        ("RUST_BACKTRACE", "1"),
        ("RUSTFLAGS", "-D warnings -C target-cpu=native"),
        ("RUSTFLAGS", "-Copt-level=3"),
        ("CFLAGS", "-O2 -g -Wall -fPIC -DX=1"),
        ("LDFLAGS", "-L/usr/lib -lm"),
        ("GOFLAGS", "-mod=vendor"),
        ("CC", "clang"),
        ("CC", "ccache gcc-13"),
        ("MAKEFLAGS", "-j8"),
        ("CARGO_TERM_COLOR", "never"),
        ("CARGO_INCREMENTAL", "0"),
        ("CARGO_TARGET_DIR", "target/x"),
        ("CARGO_BUILD_JOBS", "2"),
        ("CARGO_PROFILE_RELEASE_DEBUG", "true"),
        ("GIT_AUTHOR_NAME", "A B"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("PIP_NO_INDEX", "1"),
        ("PYTHONUNBUFFERED", "1"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("DOCKER_BUILDKIT", "1"),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_PROFILE", "dev"),
        ("PGPASSWORD", "a/b"),
        ("TF_VAR_path", "/x"),
        ("LESS", "-R"),
        ("JAVA_HOME", "/usr/lib/jvm/java-21"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GOOS", "linux"),
        ("LANG", "C"),
        ("PORT", "8080"),
        ("DATABASE_URL", "postgres://u@h/d"),
    ];
    for (name, value) in ordinary {
        assert!(!leads(name, value), "{name}={value}");
    }
}

#[test]
fn names_tell_of_a_configuration() {
    for name in [
        "ACKRC",
        "TIGRC_USER",
        "FOO_CONFIG",
        "BAR_OPTS",
        "X_WRAPPER",
        "FOOPATH",
    ] {
        assert!(is_generic(name), "{name}");
    }
    for name in [
        "FOO", "VERSION", "DIST_SRC", "NAME", "TARGET", "LIST", "OUT",
    ] {
        assert!(!is_generic(name), "{name}");
    }
}
