use std::collections::BTreeSet;
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::string::string_regex;

use super::hint::Hint;
use super::shape::Check;
use super::suspect::{suspects, suspects_of};
use super::{SHAPES, Secrets, compile, warning};
use crate::command::tests::line;
use crate::{BUILTIN, Filters, Lines, NoForeign, Output};

static SECRETS: LazyLock<Secrets> = LazyLock::new(|| Secrets::new(&[]).0);

fn kinds(text: &str) -> Vec<String> {
    let found = SECRETS.scan(text.as_bytes());
    found.into_iter().map(|secret| secret.kind).collect()
}

/// A value of `n` characters that no provider ever gave out.
fn made_up(alphabet: &str, n: usize) -> String {
    let alphabet: Vec<char> = alphabet.chars().collect();
    (0..n)
        .map(|idx| alphabet[(idx * 7 + idx * idx * 3 + 5) % alphabet.len()])
        .collect()
}

const HEX: &str = "0123456789abcdef";
const WORD: &str = "aB3dE5fG7hJ9kLmN0pQrStUvWxYz2468cDeFgHiJ";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const LOWER: &str = "a1b2c3d4e5f6g7h8i9jklmnopqrstuvwxyz";

/// Each kind with a value of its shape.
fn samples() -> Vec<(&'static str, String)> {
    let (hex, word, upper, lower) = (
        |n| made_up(HEX, n),
        |n| made_up(WORD, n),
        |n| made_up(UPPER, n),
        |n| made_up(LOWER, n),
    );
    vec![
        ("AWS access key", format!("AKIA{}", upper(16))),
        ("AWS access key", "ASIAIOSFODNN7EXAMPLE".to_owned()),
        (
            "AWS secret key",
            format!("aws_secret_access_key = {}", word(40)),
        ),
        (
            "AWS session token",
            format!("AWS_SESSION_TOKEN={}", word(300)),
        ),
        (
            "AWS session token",
            format!("\"SessionToken\": \"{}==\",", word(300)),
        ),
        ("GitHub token", format!("ghp_{}", word(36))),
        ("GitHub token", format!("ghs_{}", word(36))),
        (
            "GitHub fine-grained token",
            format!("github_pat_{}_{}", word(22), word(59)),
        ),
        ("GitLab token", format!("glpat-{}", word(20))),
        ("zeph-host token", format!("zeph_mcp_{}", word(43))),
        ("Bitbucket token", format!("ATBB{}", word(28))),
        ("Atlassian token", format!("ATATT3{}", word(180))),
        ("Slack token", format!("xoxb-123456789012-{}", word(24))),
        ("Slack token", format!("xoxc-123456789012-{}", word(24))),
        ("Slack token", format!("xoxd-{}%2B{}", word(24), word(24))),
        (
            "Slack app token",
            format!("xapp-1-{}-1234567890-{}", upper(11), hex(64)),
        ),
        (
            "Slack webhook",
            format!(
                "https://hooks.slack.com/services/{}/{}/{}",
                upper(9),
                upper(9),
                word(24)
            ),
        ),
        (
            "Discord webhook",
            format!(
                "https://discord.com/api/webhooks/123456789012345678/{}",
                word(68)
            ),
        ),
        (
            "Discord bot token",
            format!("M{}.{}.{}", word(23), word(6), word(38)),
        ),
        (
            "Teams webhook",
            format!("https://acme.webhook.office.com/webhookb2/{}", hex(36)),
        ),
        ("Telegram bot token", format!("123456789:AA{}", word(33))),
        ("Anthropic key", format!("sk-ant-api03-{}", word(95))),
        ("OpenRouter key", format!("sk-or-v1-{}", hex(64))),
        ("OpenAI key", format!("sk-proj-{}", word(48))),
        ("OpenAI key", format!("sk-{}", word(48))),
        (
            "Langfuse key",
            "sk-lf-1a2b3c4d-1a2b-4c3d-8e4f-1a2b3c4d5e6f".to_owned(),
        ),
        ("Groq key", format!("gsk_{}", word(52))),
        ("xAI key", format!("xai-{}", word(80))),
        ("Perplexity key", format!("pplx-{}", word(48))),
        ("Hugging Face token", format!("hf_{}", word(34))),
        ("Replicate token", format!("r8_{}", word(37))),
        ("LangSmith key", format!("lsv2_pt_{}_{}", hex(32), hex(10))),
        ("Pinecone key", format!("pcsk_{}", word(60))),
        ("Tavily key", format!("tvly-{}", word(32))),
        ("Google API key", format!("AIza{}", word(35))),
        ("Google OAuth secret", format!("GOCSPX-{}", word(28))),
        ("Google access token", format!("ya29.{}", word(60))),
        ("Google refresh token", format!("1//0{}", word(40))),
        (
            "Azure storage key",
            format!("AccountName=a;AccountKey={}==;", word(86)),
        ),
        (
            "Azure client secret",
            format!("{}8Q~{}", lower(3), word(34)),
        ),
        (
            "Azure shared access signature",
            format!(
                "https://x.blob.core.windows.net/c?sv=2022&sig={}%3D",
                word(43)
            ),
        ),
        ("Stripe key", format!("sk_live_{}", word(24))),
        ("Stripe webhook secret", format!("whsec_{}", word(32))),
        ("Square token", format!("sq0atp-{}", word(22))),
        (
            "Braintree token",
            format!("access_token$production${}${}", lower(16), hex(32)),
        ),
        ("Shopify token", format!("shpat_{}", hex(32))),
        ("Twilio key", format!("SK{}", hex(32))),
        ("SendGrid key", format!("SG.{}.{}", word(22), word(43))),
        ("Mailgun key", format!("key-{}", hex(32))),
        ("Mailchimp key", format!("{}-us12", hex(32))),
        ("Brevo key", format!("xkeysib-{}-{}", hex(64), word(16))),
        ("Resend key", format!("re_{}_{}", word(8), word(24))),
        ("npm token", format!("npm_{}", word(36))),
        (
            "npm registry token",
            format!("//registry.example.com/:_authToken={}", word(40)),
        ),
        ("PyPI token", format!("pypi-AgEIcHlwaS5vcmc{}", word(120))),
        ("crates.io token", format!("cio{}", word(32))),
        ("RubyGems key", format!("rubygems_{}", hex(48))),
        ("NuGet key", format!("oy2{}", lower(43))),
        ("Docker token", format!("dckr_pat_{}", word(27))),
        (
            "Docker registry password",
            format!("\"auth\": \"{}=\"", word(43)),
        ),
        ("Artifactory key", format!("AKCp{}", word(69))),
        ("DigitalOcean token", format!("dop_v1_{}", hex(64))),
        ("Heroku key", format!("HRKU-{}", word(60))),
        ("Vercel token", format!("vcp_{}", word(56))),
        ("Netlify token", format!("nfp_{}", word(36))),
        ("Fly.io token", format!("FlyV1 fm2_{}", word(200))),
        ("Cloudflare key", format!("v1.0-{}-{}", hex(24), hex(146))),
        ("Databricks token", format!("dapi{}", hex(32))),
        (
            "Snowflake or PlanetScale token",
            format!("pscale_tkn_{}", word(43)),
        ),
        ("Supabase key", format!("sbp_{}", hex(40))),
        ("Vault token", format!("hvs.{}", word(90))),
        ("Vault token", format!("X-Vault-Token: s.{}", word(24))),
        ("Vault token", format!("VAULT_TOKEN=s.{}", word(24))),
        ("Vault token", format!("\ns.{}", word(24))),
        ("Vault unseal key", format!("Unseal Key 1: {}", word(44))),
        (
            "Terraform Cloud token",
            format!("{}.atlasv1.{}", word(14), word(67)),
        ),
        ("Pulumi token", format!("pul-{}", hex(40))),
        ("Doppler token", format!("dp.st.dev.{}", word(43))),
        ("Grafana token", format!("glsa_{}_{}", word(32), hex(8))),
        ("New Relic key", format!("NRAK-{}", upper(27))),
        ("Sentry token", format!("sntrys_{}", word(80))),
        (
            "Dynatrace token",
            format!("dt0c01.{}.{}", upper(24), upper(64)),
        ),
        ("Linear key", format!("lin_api_{}", word(40))),
        ("Notion token", format!("ntn_{}", word(46))),
        ("Figma token", format!("figd_{}", word(40))),
        ("Airtable token", format!("pat{}.{}", word(14), hex(64))),
        ("Contentful token", format!("CFPAT-{}", word(43))),
        ("Postman key", format!("PMAK-{}-{}", hex(24), hex(34))),
        ("CircleCI token", format!("CCIPAT_{}_{}", word(22), hex(40))),
        ("Buildkite token", format!("bkua_{}", hex(40))),
        ("SonarQube token", format!("squ_{}", hex(40))),
        (
            "Tailscale key",
            format!("tskey-auth-{}-{}", word(12), word(32)),
        ),
        ("1Password token", format!("ops_eyJ{}", word(200))),
        ("Okta token", format!("Authorization: SSWS 00{}", word(40))),
        ("Facebook token", format!("EAA{}", word(150))),
        ("Alibaba key", format!("LTAI{}", word(20))),
        (
            "Docker registry password",
            format!("\"identitytoken\": \"{}\"", word(40)),
        ),
        (
            "private key",
            "client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQ".to_owned(),
        ),
        (
            "netrc password",
            "machine example.com  login me  password hunter2".to_owned(),
        ),
        (
            "netrc password",
            "machine example.com password hunter2 login me".to_owned(),
        ),
        (
            "netrc password",
            "default login me password hunter2".to_owned(),
        ),
        (
            "password hash",
            format!("me:$apr1${}${}", word(8), word(22)),
        ),
        ("password hash", format!("me:$1${}${}:", word(8), word(22))),
        (
            "password hash",
            format!("userPassword:: {{SSHA}}{}", word(38)),
        ),
        (
            "password in an assignment",
            r#"{\"password\": \"aB3xK9mQ2pLz\"}"#.to_owned(),
        ),
        (
            "password in an assignment",
            "<db.password>aB3xK9mQ2pLz</db.password>".to_owned(),
        ),
        (
            "password in an assignment",
            "define('DB_PASSWORD', \"aB3xK9mQ2pLz\");".replace('"', "'"),
        ),
        (
            "password in an assignment",
            "db.example.org:5432:app:me:aB3xK9mQ2pLz".to_owned(),
        ),
        (
            "password in an assignment",
            format!("RAILS_MASTER_KEY={}", hex(32)),
        ),
        ("age secret key", format!("AGE-SECRET-KEY-1{}", upper(58))),
        ("private key", "-----BEGIN RSA PRIVATE KEY-----".to_owned()),
        (
            "private key",
            "-----BEGIN OPENSSH PRIVATE KEY-----".to_owned(),
        ),
        (
            "private key",
            "\"private_key\": \"-----BEGIN PRIVATE KEY-----\\nMII".to_owned(),
        ),
        (
            "private key",
            "-----BEGIN PGP PRIVATE KEY BLOCK-----".to_owned(),
        ),
        ("PuTTY key", "PuTTY-User-Key-File-3: ssh-ed25519".to_owned()),
        (
            "JSON Web Token",
            format!("eyJ{}.eyJ{}.{}", word(30), word(60), word(43)),
        ),
        (
            "URL with a password",
            "postgres://app:hunter2@db.example.com:5432/app".to_owned(),
        ),
        (
            "URL with a password",
            "https://user:pa55word@example.com/x.git".to_owned(),
        ),
        (
            "URL with a password",
            "redis://:s3cr3t@localhost:6379/0".to_owned(),
        ),
        (
            "authorization header",
            format!("> Authorization: Bearer {}", word(40)),
        ),
        (
            "authorization header",
            "Authorization: Basic dXNlcjpwYTU1d29yZA==".to_owned(),
        ),
        (
            "netrc password",
            "machine example.com login me password hunter2".to_owned(),
        ),
        (
            "npm registry password",
            "//registry.example.com/:_auth=dXNlcjpwYXNz".to_owned(),
        ),
        (
            "token in a URL",
            format!("https://{}@github.com/a/b.git", hex(40)),
        ),
        (
            "password hash",
            "$argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHQ$RdescudvJCsgt3ub+b4dWRWJTmaaJObG"
                .to_owned(),
        ),
        (
            "password hash",
            "root:$6$abcdefgh$QmFzZTY0bG9va2luZ3ZhbHVlc29mYWhhc2g:19000:0".to_owned(),
        ),
        (
            "password in an assignment",
            "DB_PASSWORD=hunter2!hunter3".to_owned(),
        ),
        (
            "password in an assignment",
            "password: Tr0ub4dor&3".to_owned(),
        ),
        (
            "password in an assignment",
            format!("api_key = \"{}\"", hex(32)),
        ),
        (
            "password in an assignment",
            format!("\"client_secret\": \"{}\"", word(32)),
        ),
        (
            "password in an assignment",
            format!("Server=x;User Id=y;Password={};", word(12)),
        ),
        (
            "password in an assignment",
            format!("SECRET_KEY_BASE={}", hex(64)),
        ),
        (
            "password in an assignment",
            format!("secret_key_base: {}", hex(128)),
        ),
        (
            "password in an assignment",
            format!("PrivateKey = {}=", word(43)),
        ),
        ("Amazon Bedrock key", format!("ABSK{}", word(120))),
        (
            "Amazon Bedrock key",
            format!("bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t{}", word(60)),
        ),
        ("Azure key", format!("{}JQQJ99{}", word(52), word(26))),
        ("Azure key", format!("{}AZDO{}", word(76), word(4))),
        ("Cloudflare token", format!("cfut_{}", word(48))),
        ("Cloudflare token", format!("cfk_{}", word(48))),
        ("ClickHouse key", format!("4b1d{}", word(38))),
        ("Aiven password", format!("AVNS_{}", word(19))),
        ("Neon key", format!("napi_{}", lower(64))),
        ("Tencent key", format!("AKID{}", word(32))),
        ("Yandex key", format!("AQVN{}", word(36))),
        ("OpenShift token", format!("sha256~{}", word(43))),
        ("Scalingo token", format!("tk-us-{}", word(48))),
        (
            "Defined Networking key",
            format!("dnkey-{}-{}", word(26), word(52)),
        ),
        ("Sourcegraph token", format!("sgp_{}_{}", hex(16), hex(40))),
        ("Clojars token", format!("CLOJARS_{}", hex(60))),
        ("Octopus key", format!("API-{}", upper(26))),
        (
            "Harness key",
            format!("pat.{}.{}.{}", word(22), word(24), word(20)),
        ),
        ("Prefect key", format!("pnu_{}", word(36))),
        ("ReadMe key", format!("rdme_{}", lower(70))),
        ("Infracost key", format!("ico-{}", word(32))),
        (
            "LaunchDarkly key",
            "sdk-1a2b3c4d-1a2b-4c3d-8e4f-1a2b3c4d5e6f".to_owned(),
        ),
        ("Snyk token", format!("snyk_uat.{}.{}", hex(8), word(60))),
        ("NVIDIA key", format!("nvapi-{}", word(64))),
        ("Cerebras key", format!("csk-{}", lower(48))),
        ("Jina key", format!("jina_{}{}", hex(32), word(28))),
        ("ElevenLabs key", format!("sk_{}", hex(48))),
        ("Firecrawl key", format!("fc-{}", hex(32))),
        ("E2B key", format!("e2b_{}", hex(40))),
        ("Apify token", format!("apify_api_{}", word(36))),
        ("Browserbase key", format!("bb_live_{}", word(27))),
        ("PostHog key", format!("phx_{}", word(43))),
        ("Adobe secret", format!("p8e-{}", word(32))),
        ("Duffel token", format!("duffel_live_{}", word(43))),
        ("EasyPost key", format!("EZAK{}", word(54))),
        ("Flutterwave key", format!("FLWSECK_TEST-{}-X", hex(32))),
        ("Frame.io token", format!("fio-u-{}", word(64))),
        ("Shippo token", format!("shippo_live_{}", hex(40))),
        ("42 secret", format!("s-s4t2ud-{}", hex(64))),
        ("SettleMint token", format!("sm_pat_{}", word(16))),
        ("MaxMind key", format!("{}_{}_mmk", word(6), word(29))),
        ("bearer token", format!("auth: bearer {}", word(40))),
        ("token in an assignment", format!("token = {}", word(24))),
        (
            "password on a command line",
            "tool --password hunt3r2xy".to_owned(),
        ),
        (
            "password on a command line",
            "sshpass -phunt3r2xy ssh host".to_owned(),
        ),
        (
            "password on a command line",
            "curl -s -u admin:hunt3r2xy http://a".to_owned(),
        ),
        (
            "password on a command line",
            "mysql -uroot -phunter db".to_owned(),
        ),
        (
            "password on a command line",
            "mysqldump --single-transaction -u root -pS3cretPass shop > shop.sql".to_owned(),
        ),
        (
            "password on a command line",
            "docker exec db mariadb-dump -phunt3r2xy shop".to_owned(),
        ),
        (
            "password on a command line",
            "mongosh mongo.example/shop -u admin -p hunt3r2xy".to_owned(),
        ),
        (
            "password on a command line",
            "mongodump -u admin -phunt3r2xy".to_owned(),
        ),
        (
            "password on a command line",
            "docker login -u me -p hunt3r2xy registry.example".to_owned(),
        ),
        (
            "password on a command line",
            "helm registry login -p hunt3r2xy registry.example".to_owned(),
        ),
        (
            "password on a command line",
            "az login --service-principal -u app -p hunt3r2xy".to_owned(),
        ),
        (
            "password on a command line",
            "redis-cli -h cache -a hunt3r2xy ping".to_owned(),
        ),
        (
            "password on a command line",
            "ldapsearch -x -D cn=admin -w hunt3r2xy".to_owned(),
        ),
        (
            "password on a command line",
            "sqlcmd -S db -U sa -P hunt3r2xy".to_owned(),
        ),
        (
            "session cookie",
            "Set-Cookie: session=7f3e1c0a9b2d4e5f8a6b1c2d; Path=/; HttpOnly".to_owned(),
        ),
        (
            "session cookie",
            "< set-cookie: connect.sid=s%3A7f3e1c0a9b2d4e5f.8a6b1c2d; Path=/".to_owned(),
        ),
        (
            "session cookie",
            "Cookie: theme=dark; PHPSESSID=298zf09hf012fh2q; lang=de".to_owned(),
        ),
        (
            "session cookie",
            "{\"Set-Cookie\": [\"sessionid=38afes7a8xq91b2c\"]}".to_owned(),
        ),
        (
            "session cookie",
            "curl -s -b session=7f3e1c0a9b2d4e5f8a6b http://a".to_owned(),
        ),
        (
            "session cookie",
            "curl --cookie \"JSESSIONID=A1B2C3D4E5F60718\" http://a".to_owned(),
        ),
        ("Typeform token", format!("tfp_{}", word(59))),
        ("Mapbox token", format!("sk.eyJ{}.{}", word(80), word(22))),
        (
            "Plaid token",
            "access-sandbox-1a2b3c4d-1a2b-4c3d-8e4f-1a2b3c4d5e6f".to_owned(),
        ),
        ("MailerSend token", format!("mlsn.{}", hex(64))),
        (
            "1Password secret key",
            "A3-ASWWYB-798JRY-LJVD4-23DC2-86TVM-H43EB".to_owned(),
        ),
        ("GitLab token", format!("glffct-{}", word(20))),
        ("GitLab token", format!("GR1348941{}", word(20))),
        ("Artifactory key", format!("cmVmd{}", word(59))),
        ("Fly.io token", format!("fo1_{}", word(43))),
        (
            "Hugging Face token",
            format!("api_org_{}", "aBcDeFgHiJkLmNoPqR".repeat(2).split_at(34).0),
        ),
        ("Square token", format!("EAAA{}", word(60))),
    ]
}

/// Where the password in a URL ends cannot be told from its first `@`, `/`, `?` or `#`.
#[test]
fn a_password_in_a_url_may_hold_what_ends_it() {
    for url in [
        "postgres://app:p@ssw0rd@db.example.com:5432/app",
        "https://me:@bc@example.com/x.git",
        "mysql://root:a@b@c@localhost",
        "amqp://u:p/a/ss@rabbit:5672/%2f",
        "redis://:p#ss?w@10.0.0.1:6379",
        "https://user:pä55@exämple.org/",
        "mongodb+srv://u:p%40ss@cluster0.example.net/?w=majority",
        "http://u:pass@[::1]:8080/",
        "postgres://u:12345@db/x",
        "git clone https://u:hunter2@a/b.git and http://h:80/x@y",
        "http://h:80/x@y,https://u:hunter2@a/b.git",
        "DATABASE_URL='postgres://app:p@ss@db/app'",
        "{\"url\":\"https://u:h@nter2@x.example/y\"}",
    ] {
        assert_eq!(kinds(url), ["URL with a password"], "{url}");
    }
    for url in [
        "http://localhost:8080/@scope/name",
        "http://localhost:8080/?mail=me@example.com",
        "https://registry.example.com:443/@types/node@20.1.0",
        "docker://alpine:3.19@sha256:9f86d081884c7d659a2feaa0c55ad015",
        "{\"a\":\"http://x:80\",\"b\":\"me@example.com\"}",
        "npm://npm:@scope/name@1.0.0",
        "file://C:/Users/me@work/x",
        "ssh://git@github.com:owner/repo@v1",
        "https://$USER:$PASSWORD@example.com",
        "https://user:<password>@example.com",
        "https://example.com/a:b@c",
        "see http://a.b:80, or mail x@y.example",
    ] {
        assert_eq!(kinds(url), [""; 0], "{url}");
    }
}

/// Each word of an entry may have a line of its own.
#[test]
fn a_netrc_entry_may_have_several_lines() {
    for text in [
        "machine example.com\n  login me\n  password hunter2x\n",
        "machine example.com\n\tlogin me\n\tpassword\thunter2x",
    ] {
        let found = SECRETS.scan(text.as_bytes());
        let found: Vec<_> = (found.iter())
            .map(|secret| (secret.line, secret.kind.as_str()))
            .collect();
        assert_eq!(found, [(3, "netrc password")], "{text}");
    }
}

/// Quotes say where a value ends; what looks like code or a list is none.
#[test]
fn a_password_in_quotes_may_hold_what_ends_it() {
    for text in [
        "password = 'p@ss,w0rd;1x'",
        "SECRET_KEY='dj@ngo-ins3cure(x)'",
        "{\"pass\": \"hunt3r2xy@\"}",
        "{\"db_password\":\"a1]b2}c3,d4\"}",
        "secretKey=a1b2c3d4@e5f6",
        "DB_PASS=s3cretpw9",
        "passphrase: c0rr3cth0rse@",
    ] {
        assert_eq!(kinds(text), ["password in an assignment"], "{text}");
    }
    for text in [
        "password = \"read_password(1)\"",
        "secret: \"a1,b2,c3\"",
        "\"password\": \"<password-1>\"",
        "12 passed, 1 failed; by-pass=abcdefgh",
        "token: Token { kind: Ident, span: 12..14 }",
        "unexpected token: 'x1'",
        "--password-file secrets/db1.txt",
        "curl -u user http://a:8080/x1",
        "Bearer realm=\"https://auth.example/token\"",
    ] {
        assert_eq!(kinds(text), [""; 0], "{text}");
    }
}

#[test]
fn every_shape_is_found_in_any_surroundings() {
    let samples = samples();
    assert!(samples.len() >= 60);
    let mut wrong = Vec::new();
    for (kind, sample) in &samples {
        for text in [
            sample.clone(),
            format!("ordinary\nsome words {sample}\nmore"),
            format!("\u{1b}[32m{sample}\u{1b}[0m"),
            format!("export X='{sample}'"),
        ] {
            if kinds(&text) != [*kind] {
                wrong.push(format!("{text}: {:?}", kinds(&text)));
            }
        }
    }
    for shape in SHAPES.iter() {
        assert!(
            samples.iter().any(|(kind, _)| *kind == shape.kind),
            "no sample of {}",
            shape.kind
        );
        assert!(compile(shape.pattern).is_some());
    }
}

#[test]
fn ordinary_text_raises_no_alarm() {
    for text in [
        "7f3e1c0a-9b2d-4e5f-8a6b-1c2d3e4f5a6b",
        "commit 3b18e512dba79e4c8300dd08aeb37f8e728b8dad",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "\"integrity\": \"sha512-6kt2OWZmy6ZB1vFz1pvP9L2C3sQWBWaRaBWCVk0bFzQ2pVJfnCPJYGbLk2bhHo7Ah8g3b9hQ8Z6p+1x==\",",
        "checksum = \"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"",
        "password: ********",
        "password=${DB_PASSWORD}",
        "let password = read_password()?;",
        "api_key: Option<String>,",
        "const secret = process.env.SECRET_1;",
        "secret_key: your-secret-key-1",
        "access_token: <token>",
        "token = tokenizer.next()",
        "http://localhost:8080/@scope/name",
        "https://user@example.com/x",
        "git@github.com:owner/repo.git",
        "the-task-management-framework-for-everyone-1",
        "src/risk-assessment-module-of-the-year-2024.ts",
        "xoxo",
        "test tests::password_2_is_checked ... ok",
        "PASSWORD_HASHERS = django.contrib.auth.hashers1",
        "secretKeyRef: db-credentials-1",
        "    Compiling secrecy v0.8.0",
        "\treturn s.ReadUint16LengthPrefixed((*cryptobyte.String)(out))",
        "\tread := s.ReadUint16LengthPrefixed",
        "\tn = s.abcd1efgh2ijkl3mnop4qrst(x)",
        "credentials: same-origin",
        "-----BEGIN PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----",
        "npm_config_registry=https://registry.example.com",
        "Authorization: Bearer $TOKEN",
        "enter the\npassword required",
        "  password ${PASSWORD}",
        "x = this.s.aMethodWithAVeryLongName",
        "see https://some-organisation-with-a-very-long-name-indeed@example.com",
        "self._auth=HTTPBasicAuth(user, key)",
        "aws_key_name = \"deploy\"",
        "re_export_everything_from_the_module_of_the_same_name",
        "sed -E 's/(a)(b)/$1$2/'",
        "the default login is password protected",
        "The default password admin1 opens the login page",
        "machine learning password reset login page",
        "client-certificate-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t",
        "LS0tLS1CRUdJTiBSU0EgUFVCTElDIEtFWS0tLS0t",
        "unseal key shares: 5",
        "{SSHA} is salted, {SSHA512} as well",
        "<password>your-password-1</password>",
        "<password>${db.password1}</password>",
        "define('CACHE_KEY', 'v2_items_of_cache1');",
        "main.rs:12:8:error:expected1",
        "console.log(\"password\\\": \\\"<password-1>\\\"\")",
        "s.lower().replace_all_of_these",
        "mysql -u root -p shop1_production",
        "mysql --port=3306 --protocol=tcp1",
        "mysql -uroot -p$MYSQL_PASSWORD1",
        "mysql -P 3306 -h db1",
        "mysql Ver 8.0.36-28 for Linux -pv",
        "mysqlclient -python3 bindings",
        "mongo --port 27017 -p",
        "mongodb -p 27017:27017x",
        "docker run -p 127.0.0.1:8080:80 nginx1",
        "docker login -u me --password-stdin",
        "the login page -purpose1 of it",
        "redis-cli -h cache -a $REDIS_PASSWORD1",
        "ldapsearch -w <password-1>",
        "Set-Cookie: theme=dark; Path=/",
        "Set-Cookie: session=deleted; expires=Thu, 01 Jan 1970 00:00:00 GMT",
        "Cookie: session=<your-session-id-1>",
        "document.cookie = \"session=\" + encodeURIComponent(value1)",
        "response.set_cookie(\"session_token\", token_of(user1))",
        "const cookie = require('cookie-session-middleware1')",
        "SESSION_COOKIE_NAME = sessionid_of_the_site1",
        "curl -b cookies.txt -c cookies.txt http://localhost:8080",
        "",
    ] {
        assert_eq!(kinds(text), [""; 0], "{text}");
    }
}

#[test]
fn recorded_outputs_and_lock_files_raise_no_alarm() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let lock = std::fs::read(root.join("Cargo.lock")).expect("the workspace has a lock file");
    let (secrets, _) = Secrets::new(&[]);
    assert_eq!(secrets.scan(&lock), []);
    for entry in std::fs::read_dir(root.join("filters/rules"))
        .expect("the rules have a folder")
        .flatten()
    {
        let Ok(cases) = std::fs::read_dir(entry.path()) else {
            continue;
        };
        for case in cases.flatten() {
            let raw = std::fs::read(case.path()).expect("a case can be read");
            assert_eq!(secrets.scan(&raw), [], "{}", case.path().display());
        }
    }
}

#[test]
fn a_warning_names_kind_and_line_and_no_value() {
    let token = format!("ghp_{}", made_up(WORD, 36));
    let raw = format!("one\r\ntwo\n{token} {token}\nfour postgres://a:hunter2@b/c\n");
    let (secrets, _) = Secrets::new(&[]);
    let found = secrets.scan(raw.as_bytes());
    let warning = warning(&found).expect("there are two");
    assert_eq!(
        warning,
        "[zeph] what looks like credentials is in the raw output: GitHub token (line 3), URL with a password (line 4). Do not repeat them."
    );
    assert_eq!(super::warning(&[]), None);
}

#[test]
fn patterns_of_the_operator_count_too() {
    let patterns = ["ACME-[0-9]{6}", "(", "", "x*", &"a".repeat(513)].map(str::to_owned);
    let (secrets, warnings) = Secrets::new(&patterns);
    assert_eq!(warnings.len(), 4, "{warnings:?}");
    let found = secrets.scan(b"a\nACME-123456\n");
    assert_eq!(
        (found[0].line, found[0].kind.as_str()),
        (2, "a pattern of your own")
    );
}

#[test]
fn hostile_text_takes_linear_time() {
    let (secrets, _) = Secrets::new(&[]);
    for unit in [
        "eyJaaaaaaaaaa.",
        "password=",
        "sk-",
        "://a:",
        "aws key = ",
        "ghp_",
        "authorization: bearer ",
        "mysql -p ",
        "cookie: a=b; ",
        "curl -b a=b; ",
        "docker login -p ",
    ] {
        let text = unit.repeat(200_000 / unit.len());
        assert!(secrets.scan(text.as_bytes()).len() <= 20);
        assert!(secrets.scan(text.replace(' ', "\n").as_bytes()).len() <= 20);
    }
}

#[test]
fn hints_are_read_as_written() {
    let words =
        |hint: &str| -> Vec<String> { Hint::all(hint).into_iter().map(|hint| hint.word).collect() };
    assert_eq!(words(r"(?i)a[_-]b|cd"), ["a_b", "a-b", "cd"]);
    assert_eq!(words(r"\bx[0-2]{5}|://…@"), ["x0", "x1", "x2", "://"]);
    assert_eq!(words(""), [""; 0]);
    let fits = |hint: &str, text: &str, start: usize, end: usize| {
        Hint::all(hint)[0].fits(text.as_bytes(), start, end)
    };
    assert!(fits(r"\bsk-{3}", "sk-a_9", 0, 3) && fits(r"\bsk-{3}", " sk-a_9", 1, 4));
    assert!(!fits(r"\bsk-{3}", "tsk-a_9", 1, 4) && !fits(r"\bsk-{3}", "sk-a.9", 0, 3));
    assert!(!fits(r"\bsk-{3}", "sk-a9", 0, 3));
    assert!(fits("://…@", "://a@", 0, 3) && !fits("://…@", ":// a@", 0, 3));
    for given in [
        "pass=",
        "passes:",
        "pass_key = ",
        "pass\" : ",
        "pass'\t\t\t\t\t=",
        "pass\\\"=",
        "pass\\\\\\\":",
    ] {
        assert!(fits("pass{=}", given, 0, 4), "{given}");
    }
    for other in [
        "pass",
        "pass the salt",
        "pass 1=",
        "passages, as:",
        "pass\"\"=",
        "pass\\=",
        "pass\\\\\\\\\":",
    ] {
        assert!(!fits("pass{=}", other, 0, 4), "{other}");
    }
}

#[test]
fn what_begins_a_line_is_found_in_the_first_one_and_in_others() {
    let token = format!("s.{}", made_up(WORD, 24));
    let found = SECRETS.scan(format!("{token}\nthis.{token}\n{token}\n").as_bytes());
    let lines: Vec<usize> = found.iter().map(|secret| secret.line).collect();
    assert_eq!(lines, [1, 3]);
}

#[test]
fn a_shape_is_suspected_once_a_line() {
    let text = "sk_live_ sk_live_\nnothing\nsk_live_ AKIA\n";
    let found = suspects(text);
    let kinds: Vec<_> = (found.iter())
        .map(|suspect| (suspect.line_start, SHAPES[suspect.shape_idx].kind))
        .collect();
    let stripe = "Stripe key";
    assert_eq!(kinds, [(0, stripe), (26, "AWS access key"), (26, stripe)]);
}

/// A text of very many suspects is searched piece by piece, with the same findings.
#[test]
fn many_suspects_are_not_remembered() {
    let text = format!(
        "{}error: ghp_{}\n",
        "sk_live_ \n".repeat(40_000),
        made_up(WORD, 36)
    );
    assert_eq!(suspects_of(&Lines::of(&text)), None);
    let (filters, _) = Filters::load(BUILTIN, None);
    let command = line("make", &[]);
    let output = Output {
        command: Some(&command),
        exit_code: Some(2),
        raw: text.as_bytes(),
    };
    let filtered = filters.apply(&output, &NoForeign);
    let found = SECRETS.scan_filtered(text.as_bytes(), &filtered);
    assert_eq!(found, SECRETS.scan(text.as_bytes()));
    assert_eq!(found.len(), 1);
}

/// Beyond the first piece of a long output lines are counted on.
#[test]
fn lines_of_long_outputs_are_counted_from_their_beginning() {
    let token = format!("ghp_{}", made_up(WORD, 36));
    let before = "an ordinary line\n".repeat(20_000);
    let found = SECRETS.scan(format!("{before}{token}\n{before}{token}").as_bytes());
    let lines: Vec<usize> = found.iter().map(|secret| secret.line).collect();
    assert_eq!(lines, [20_001, 40_002]);
}

/// What every line is when every expression is tried on it.
fn plain_scan(text: &str) -> Vec<(usize, String)> {
    let text = crate::strip(text);
    let mut found = Vec::new();
    for (line_idx, line) in text.split('\n').enumerate() {
        let kinds = super::kinds(line, 0..SHAPES.len());
        // Shapes of one kind are one finding.
        let kinds: BTreeSet<_> = kinds.into_iter().map(str::to_owned).collect();
        found.extend(kinds.into_iter().map(|kind| (line_idx + 1, kind)));
    }
    found
}

/// Credentials as the expressions describe them: what they say of borders is omitted.
fn credentials() -> impl Strategy<Value = String> {
    let generators: Vec<_> = SHAPES
        .iter()
        .map(|shape| {
            let pattern = shape.pattern.replace(r"\b", "");
            let pattern = pattern.trim_start_matches('^').trim_end_matches('$');
            let pattern = pattern.replace("(?:^|", "(?:").replace("|$)", ")");
            let short = ["2000}", "4000}", "1500}"]
                .iter()
                .fold(pattern, |short, n| short.replace(n, "90}"));
            // What follows the match is part of it.
            let short = match shape.check {
                Check::Url => format!("{short}[a-z@/?#]{{0,9}}@[a-z]"),
                _ => short,
            };
            string_regex(&short).expect("a generator").boxed()
        })
        .collect();
    prop::sample::select(generators)
        .prop_flat_map(|generator| generator)
        // Letters that only an expression takes for an `s` and a `k`.
        .prop_map(|text| text.replace('ſ', "s").replace('\u{212a}', "k"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_line_is_suspected_of_all_it_is(
        parts in prop::collection::vec((credentials(), prop::sample::select(vec!["", " ", "\n", "x", "_", "\"", "="])), 0..5)
    ) {
        let text: String = parts.iter().map(|(credential, after)| format!("{credential}{after}")).collect();
        let found: Vec<_> = SECRETS.scan(text.as_bytes()).into_iter().map(|secret| (secret.line, secret.kind)).collect();
        prop_assert_eq!(found, plain_scan(&text));
    }

    /// What is found together is what is found apart.
    #[test]
    fn errors_and_suspects_are_found_together(
        parts in prop::collection::vec((
            prop_oneof![credentials(), Just("error: it failed".to_owned()), Just("E   warning".to_owned())],
            prop::sample::select(vec![" ", "\n", "\n\n\n", "x", ": "]),
        ), 0..8)
    ) {
        let text: String = parts.iter().map(|(part, after)| format!("{part}{after}")).collect();
        for is_folded in [false, true] {
            let [mut together, mut apart] = [Lines::of(&text), Lines::of(&text)];
            if is_folded {
                assert_eq!(together.fold(), apart.fold());
            }
            prop_assert_eq!(suspects_of(&together), Some(suspects(&text)));
            for line_idx in 0..apart.len() {
                prop_assert_eq!(together.severity(line_idx), apart.severity(line_idx));
            }
        }
    }
}

proptest! {
    #[test]
    fn a_token_is_found_wherever_it_stands(before in r"[a-z0-9 .:/=\n]{0,80}", after in r"[ \n.,;)][ -~\n]{0,80}") {
        let token = format!("ghp_{}", made_up(WORD, 36));
        let found = kinds(&format!("{before} {token}{after}"));
        prop_assert!(found.iter().any(|kind| kind == "GitHub token"), "{:?}", found);
    }
}
