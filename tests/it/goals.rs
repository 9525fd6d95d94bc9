//! Goals: outputs beside them are compressed, nothing is lost, and everything a turn reaches knows which goal it is.

use std::fs;

use serde_json::{Value, json};

use crate::mcp_client::McpClient;
use crate::product::{Product, answer};
use crate::terminal::Prompt;

/// A workspace with a configuration of the user.
fn product(config: &str) -> Product {
    let product = Product::new();
    let folder = product.home.join(".config/zeph-host");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("config.toml"),
        format!("[run]\njobs = 1\n{config}"),
    )
    .unwrap();
    product
}

const GOAL: &str = "[agent]\ngoal_text = \"mend the parser of dates\"\n";

/// Prints 200 lines, two of which matter.
const COMMAND: &str = "for n in $(seq 200); do echo \"step $n of the build went as it should, nothing to see\"; \
    [ $n = 50 ] && echo 'src/date.rs:3:1: error: something is wrong here'; \
    [ $n = 120 ] && echo 'checked parse_date in src/date.rs'; done; true";

fn line(id: u32, tool: &str, params: &Value) -> String {
    json!({"id": id, "tool": tool, "params": params}).to_string() + "\n"
}

fn bash(id: u32, command: &str) -> String {
    line(id, "bash", &json!({"command": command}))
}

fn text(answers: &[Value], id: u32) -> &str {
    answer(answers, id)["text"].as_str().unwrap()
}

#[test]
fn what_is_beside_the_goal_is_replaced_and_can_be_read_back() {
    let product = product(GOAL);
    let conversation = "0192f3c0-0000-7000-8000-00000000000a";
    let args = ["--allow", "*", "--conversation", conversation];
    let input = [
        bash(1, COMMAND),
        bash(2, COMMAND),
        bash(3, "echo $ZEPH_GOAL_ID"),
    ]
    .concat();
    let answers = product.answers(&args, input);
    let shown = text(&answers, 1);
    for kept in [
        "step 1 of",
        "step 200 of",
        "src/date.rs:3:1: error: something",
        "checked parse_date",
        "[output filtered: 49 lines beside the goal; all of it: overflow:",
    ] {
        assert!(shown.contains(kept), "{kept}: {shown}");
    }
    assert!(!shown.contains("step 30 of"), "{shown}");
    let handle = answer(&answers, 1)["overflow"].as_str().unwrap();
    let markers = shown
        .lines()
        .filter(|line| line.starts_with("[output filtered: "));
    assert!(
        markers.clone().count() >= 2 && markers.clone().all(|line| line.contains(handle)),
        "{shown}"
    );
    // The same output is the same again, but for its handle.
    let again = answer(&answers, 2)["overflow"].as_str().unwrap();
    assert_ne!(handle, again);
    assert_eq!(shown, text(&answers, 2).replace(again, handle));
    let goal_id = text(&answers, 3).trim().to_owned();
    assert!(goal_id.len() == 36 && goal_id.contains('-'), "{goal_id}");
    let audit = product.run(&["audit", "query", "--json"]).json_lines();
    assert!(
        audit
            .iter()
            .all(|record| record["goal_id"] == json!(goal_id)),
        "{audit:#?}"
    );
    let read = line(
        4,
        "read_overflow",
        &json!({"id": handle, "offset": 29, "limit": 1}),
    );
    let read = product.answers(&args, read);
    assert!(text(&read, 4).starts_with("step 30 of"), "{read:?}");
}

#[test]
fn without_a_goal_and_for_a_person_nothing_is_compressed() {
    let answers = product("").answers(&["--allow", "*"], bash(1, COMMAND));
    assert!(text(&answers, 1).contains("step 30 of"), "{answers:?}");
    let off = format!("{GOAL}[tools.compression]\nenabled = false\n");
    let answers = product(&off).answers(&["--allow", "*"], bash(1, COMMAND));
    assert!(text(&answers, 1).contains("step 30 of"), "{answers:?}");
    let typed = format!("command={COMMAND}");
    let ran = product(GOAL).run(&["call", "bash", &typed]);
    assert!(
        ran.stdout.contains("step 30 of"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}

#[test]
fn what_failed_stays_whole() {
    let command = format!("{COMMAND}; exit 3");
    let answers = product(GOAL).answers(&["--allow", "*"], bash(1, &command));
    assert!(text(&answers, 1).contains("step 30 of"), "{answers:?}");
    let config = format!("{GOAL}[tools.compression]\npreserve_shell_errors = false\n");
    let answers = product(&config).answers(&["--allow", "*"], bash(1, &command));
    let shown = text(&answers, 1);
    assert!(
        !shown.contains("step 30 of") && shown.contains("src/date.rs:3:1: error"),
        "{shown}"
    );
}

#[test]
fn strategies_are_chosen_for_each_tool() {
    let config =
        format!("{GOAL}[tools.compression.strategies]\nbash = \"none\"\nread = \"aggressive\"\n");
    let product = product(&config);
    let file: String = (0..100)
        .map(|n| format!("line {n} of a file that has nothing to do with it\n"))
        .collect();
    product.file("a.txt", file);
    let read = line(2, "read", &json!({"path": "a.txt"}));
    let answers = product.answers(&["--allow", "*"], bash(1, COMMAND) + &read);
    assert!(text(&answers, 1).contains("step 30 of"), "{answers:?}");
    assert!(
        text(&answers, 2).contains("[output filtered: "),
        "{answers:?}"
    );
    assert!(!text(&answers, 2).contains("line 50 of"), "{answers:?}");
}

#[test]
fn what_is_short_enough_stays_and_what_stays_is_bounded() {
    let config = format!("{GOAL}[tools.compression]\ncompression_threshold_tokens = 100000\n");
    let answers = product(&config).answers(&["--allow", "*"], bash(1, COMMAND));
    assert!(text(&answers, 1).contains("step 30 of"), "{answers:?}");
    let config = format!("{GOAL}[tools.compression]\nmax_preserved_chars = 300\n");
    let command = "for n in $(seq 200); do [ $((n % 5)) = 0 ] && echo \"date $n is one of many dates in this list\" || \
        echo \"step $n of the build went as it should, nothing to see\"; done";
    let answers = product(&config).answers(&["--allow", "*"], bash(1, command));
    let shown = text(&answers, 1);
    assert!(
        shown.contains("near it beyond `tools.compression.max_preserved_chars`"),
        "{shown}"
    );
    let kept = shown.lines().filter(|line| !line.starts_with('['));
    assert!(kept.map(str::len).sum::<usize>() <= 300, "{shown}");
}

#[test]
fn a_turn_knows_what_its_outputs_held() {
    let product = product("");
    let said = "echo https://example.org/x src/main.rs:1; echo '{\"a\": [1, 2]}'";
    let reads = "cat \"$ZEPH_TURN_STATE\"; bash -c 'exec 58<&-; cat \"$ZEPH_TURN_STATE\" >/dev/null && echo inherited'; \
        test -w \"$ZEPH_TURN_STATE\" || echo read-only; echo no >\"$ZEPH_TURN_STATE\"; cat \"$ZEPH_TURN_STATE\"";
    let of = |id: u32, turn: &str, caller: &str, tool: &str, params: Value| {
        let line =
            json!({"id": id, "turn": turn, "caller_id": caller, "tool": tool, "params": params});
        line.to_string() + "\n"
    };
    let input = [
        of(1, "one", "a", "bash", json!({"command": said})),
        of(2, "one", "a", "bash", json!({"command": reads})),
        of(3, "one", "a", "turn_state", json!({})),
        of(4, "one", "a", "turn_state", json!({"kind": "urls"})),
        of(5, "one", "b", "turn_state", json!({})),
        of(
            6,
            "one",
            "b",
            "bash",
            json!({"command": "cat $ZEPH_TURN_STATE"}),
        ),
        of(7, "two", "a", "turn_state", json!({})),
        of(
            8,
            "two",
            "a",
            "bash",
            json!({"command": "cat $ZEPH_TURN_STATE"}),
        ),
    ];
    let answers = product.answers(&["--allow", "*"], input.concat());
    let state =
        r#"{"json":[{"a":[1,2]}],"paths":["src/main.rs"],"urls":["https://example.org/x"]}"#;
    let read = text(&answers, 2);
    assert!(read.matches(state).count() == 2, "{read}");
    assert!(
        read.contains("inherited") && read.contains("read-only"),
        "{read}"
    );
    let told = &answer(&answers, 3)["structured"];
    assert_eq!(
        told["urls"],
        json!(["https://example.org/x"]),
        "{answers:#?}"
    );
    let urls = &answer(&answers, 4)["structured"];
    assert_eq!(*urls, json!({"urls": ["https://example.org/x"]}));
    let nothing = r#"{"json":[],"paths":[],"urls":[]}"#;
    for id in [6, 8] {
        assert!(text(&answers, id).starts_with(nothing), "{answers:#?}");
    }
    for id in [5, 7] {
        assert_eq!(answer(&answers, id)["structured"].to_string(), nothing);
    }
}

#[test]
fn no_secret_is_in_the_state_of_a_turn() {
    let product = product("");
    let set = product.set_secret("API_KEY", "s3cr3t-value-of-it\n");
    assert_eq!(set.code, Some(0), "{}", set.stderr);
    let said = "echo \"{\\\"key\\\": \\\"s3cr3t-value-of-it\\\"} https://example.org/?k=s3cr3t-value-of-it\"";
    let input =
        bash(1, said) + &bash(2, "cat $ZEPH_TURN_STATE") + &line(3, "turn_state", &json!({}));
    let ran = product.feed(&["--allow", "*"], input);
    assert!(!ran.stdout.contains("s3cr3t-value-of-it"), "{}", ran.stdout);
}

#[test]
fn clients_of_mcp_work_towards_the_goal_too() {
    let product = product(GOAL);
    let mut client = McpClient::legacy(&product, &["--allow", "bash"], &json!({}));
    let shown = client.call("bash", json!({"command": COMMAND})).to_string();
    assert!(shown.contains("[output filtered: 49 lines"), "{shown}");
    let told = client.call("bash", json!({"command": "echo goal=$ZEPH_GOAL_ID"}));
    assert!(told.to_string().contains("goal=0"), "{told}");
}

#[test]
fn a_person_at_the_prompt_plans_too() {
    let product = product("");
    let mut prompt = Prompt::start(&product);
    for (line, words) in [
        ("/plan", "there is no goal"),
        ("/plan Mend the parser", "goal 0"),
        ("bash command=\"echo is-$ZEPH_GOAL_ID\"", "is-0"),
        ("/plan cancel", "cancelled: Mend the parser"),
        ("bash command=\"echo is-$ZEPH_GOAL_ID.\"", "is-."),
        ("/plan list", "cancelled"),
    ] {
        prompt.type_line(line);
        // Keys count once the prompt is there.
        prompt.until_all(&[words, "zeph"]);
    }
    prompt.type_line("/quit");
    assert_eq!(prompt.wait(), Some(0));
}
