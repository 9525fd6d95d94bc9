//! Options that programs take before the word that says what to do: `git -C . push` is a `git push`.

use crate::command::SimpleCommand;

/// Programs with such options, and those options of theirs that take the next word. All others are treated as flags.
///
/// Sources: the manual pages and `--help` of the programs.
const VALUED: &[(&[&str], &[&str])] = &[
    (
        &["git"],
        &[
            "-C",
            "-c",
            "--git-dir",
            "--work-tree",
            "--namespace",
            "--config-env",
            "--super-prefix",
            "--attr-source",
        ],
    ),
    (&["cargo"], &["-C", "-Z", "--config", "--color"]),
    (&["go"], &["-C"]),
    (
        &["npm"],
        &[
            "-C",
            "-w",
            "--prefix",
            "--workspace",
            "--userconfig",
            "--globalconfig",
            "--registry",
            "--loglevel",
            "--cache",
        ],
    ),
    (
        &["pnpm"],
        &["-C", "-F", "--dir", "--filter", "--loglevel", "--reporter"],
    ),
    (&["yarn", "bun"], &["--cwd"]),
    (
        &["docker", "podman", "nerdctl"],
        &[
            "-c",
            "-H",
            "-l",
            "--config",
            "--context",
            "--host",
            "--log-level",
            "--tlscacert",
            "--tlscert",
            "--tlskey",
            "--connection",
            "--root",
            "--runtime",
            "--url",
        ],
    ),
    (
        &["kubectl", "oc"],
        &[
            "-n",
            "-s",
            "-v",
            "--namespace",
            "--context",
            "--kubeconfig",
            "--cluster",
            "--user",
            "--server",
            "--token",
            "--as",
            "--as-group",
            "--as-uid",
            "--request-timeout",
            "--cache-dir",
            "--certificate-authority",
            "--client-certificate",
            "--client-key",
            "--tls-server-name",
            "--username",
            "--password",
            "--profile",
            "--profile-output",
        ],
    ),
    (
        &["helm"],
        &[
            "-n",
            "--namespace",
            "--kube-context",
            "--kubeconfig",
            "--kube-apiserver",
            "--kube-token",
            "--registry-config",
            "--repository-cache",
            "--repository-config",
        ],
    ),
    (&["gh"], &["-R", "--repo"]),
    (
        &["systemctl"],
        &[
            "-H",
            "-M",
            "-n",
            "-o",
            "-p",
            "-s",
            "-t",
            "--host",
            "--lines",
            "--machine",
            "--output",
            "--property",
            "--root",
            "--signal",
            "--state",
            "--type",
        ],
    ),
    (
        &["pip", "pip3"],
        &[
            "--cache-dir",
            "--cert",
            "--client-cert",
            "--exists-action",
            "--log",
            "--proxy",
            "--python",
            "--retries",
            "--timeout",
            "--trusted-host",
        ],
    ),
    (
        &["apt", "apt-get", "aptitude"],
        &[
            "-c",
            "-o",
            "-t",
            "--config-file",
            "--option",
            "--target-release",
        ],
    ),
    (
        &["dnf", "yum", "zypper"],
        &[
            "-c",
            "-C",
            "-d",
            "-R",
            "-x",
            "--config",
            "--installroot",
            "--releasever",
            "--root",
            "--setopt",
        ],
    ),
    (
        &["aws"],
        &[
            "--ca-bundle",
            "--color",
            "--endpoint-url",
            "--output",
            "--profile",
            "--query",
            "--region",
        ],
    ),
    (
        &["gcloud"],
        &[
            "--account",
            "--billing-project",
            "--configuration",
            "--format",
            "--impersonate-service-account",
            "--project",
            "--verbosity",
        ],
    ),
    (&["az"], &["-o", "--output", "--query", "--subscription"]),
    (
        &["hg"],
        &[
            "-R",
            "--color",
            "--config",
            "--cwd",
            "--encoding",
            "--pager",
            "--repository",
        ],
    ),
    (
        &["svn"],
        &[
            "--config-dir",
            "--config-option",
            "--password",
            "--username",
        ],
    ),
    (
        &["jj"],
        &[
            "-R",
            "--at-op",
            "--at-operation",
            "--color",
            "--config",
            "--config-file",
            "--repository",
        ],
    ),
    (&["poetry"], &["-C", "-P", "--directory", "--project"]),
    (
        &["uv"],
        &[
            "--cache-dir",
            "--color",
            "--config-file",
            "--directory",
            "--project",
        ],
    ),
    (&["composer"], &["-d", "--working-dir"]),
    (&["heroku"], &["-a", "--app"]),
    (&["virsh"], &["-c", "--connect"]),
    (&["tmux"], &["-f", "-L", "-S"]),
];

/// Where the arguments behind the program's own options begin; `None` when the program has none, or none stands there.
pub(super) fn end(command: &SimpleCommand) -> Option<usize> {
    let name = command.base_name().to_lowercase();
    let (_, valued) = VALUED
        .iter()
        .find(|(names, _)| names.contains(&name.as_str()))?;
    let mut at = 0;
    while let Some(argument) = command.arguments.get(at) {
        // `cargo +nightly publish`.
        let is_toolchain = name == "cargo" && argument.starts_with('+');
        if !argument.starts_with('-') && !is_toolchain {
            break;
        }
        at += if valued.contains(&argument.as_str()) {
            2
        } else {
            1
        };
    }
    (0 < at && at < command.arguments.len()).then_some(at)
}
