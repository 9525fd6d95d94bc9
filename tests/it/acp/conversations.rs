//! Sessions: stored ones, several at once, cancelled ones, and clients that leave.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::client::Client;
use super::model::{Answer, Model, calls, says};
use super::{plain, product};

#[test]
fn a_stored_session_is_told_again_before_its_answer_and_goes_on() {
    let model = Model::new([
        calls("read", json!({"path": "a.txt"})),
        says("It says hello."),
        says("I remember."),
        says("I still do."),
    ]);
    let product = product(&model);
    product.file("a.txt", "hello\n");
    let mut client = Client::start(&product, &[], plain());
    let session = client.session(&product.work);
    client.prompt(&session, "what does it say?", |_, request| {
        panic!("{request}")
    });
    assert_eq!(client.leave(), Some(0));

    let mut client = Client::start(&product, &[], plain());
    let listed = client
        .ask("session/list", json!({"cwd": product.work}))
        .unwrap();
    assert_eq!(listed["sessions"][0]["sessionId"], json!(session));
    assert_eq!(listed["sessions"][0]["title"], "what does it say?");
    assert_eq!(listed["sessions"][0]["cwd"], json!(product.work));
    let elsewhere = client.ask("session/list", json!({"cwd": "/"})).unwrap();
    assert_eq!(elsewhere["sessions"], json!([]));

    let place = json!({"sessionId": session, "cwd": product.work, "mcpServers": []});
    let answer = client.ask("session/load", place.clone()).unwrap();
    assert_eq!(answer["modes"]["currentModeId"], "ask");
    // All of it came before the answer.
    assert_eq!(
        client.of_kind("user_message_chunk")[0]["content"]["text"],
        "what does it say?"
    );
    assert_eq!(client.text(), "It says hello.");
    let (begun, ended) = client.ended_call();
    assert_eq!(
        (&begun["kind"], &ended["status"]),
        (&json!("read"), &json!("completed"))
    );
    client.prompt(&session, "and?", |_, request| panic!("{request}"));
    assert!(
        model.requests()[2]["messages"]
            .to_string()
            .contains("It says hello.")
    );
    let closed = client
        .ask("session/close", json!({"sessionId": session}))
        .unwrap();
    assert_eq!(closed, json!({}));

    client.updates.clear();
    client.ask("session/resume", place).unwrap();
    assert!(client.of_kind("user_message_chunk").is_empty());
    client.prompt(&session, "and?", |_, request| panic!("{request}"));
    assert!(
        model.requests()[3]["messages"]
            .to_string()
            .contains("It says hello.")
    );
    client
        .ask("session/delete", json!({"sessionId": session}))
        .unwrap();
    let listed = client.ask("session/list", json!({})).unwrap();
    assert_eq!(listed["sessions"], json!([]));
}

#[test]
fn two_sessions_work_at_once_in_their_own_directories() {
    let model = Model::new([
        calls("read", json!({"path": "name"})),
        calls("read", json!({"path": "name"})),
        says("one"),
        says("two"),
    ]);
    let product = product(&model);
    product
        .file("one/name", "first\n")
        .file("two/name", "second\n");
    let mut client = Client::start(&product, &[], plain());
    let sessions = ["one", "two"].map(|folder| client.session(&product.work.join(folder)));
    assert_ne!(sessions[0], sessions[1]);
    let turns = sessions
        .clone()
        .map(|session| client.send_prompt(&session, "which?"));
    let mut answered = Vec::new();
    while answered.len() < 2 {
        let message = client.next();
        if message.get("result").is_some() && turns.iter().any(|turn| message["id"] == json!(turn))
        {
            answered.push(message);
        }
    }
    for (session, expected) in sessions.iter().zip(["first", "second"]) {
        let ends = client
            .updates
            .iter()
            .filter(|(of, update)| of == session && update["sessionUpdate"] == "tool_call_update");
        let ends: Vec<String> = ends
            .map(|(_, update)| update["content"].to_string())
            .collect();
        assert_eq!(ends.len(), 1);
        assert!(ends[0].contains(expected), "{ends:?}");
    }
}

/// Cancels when `is_time` says so; nothing of the turn may come after its answer.
fn cancelled(answers: Vec<Answer>, is_time: impl Fn(&Value) -> bool) -> Client {
    let model = Model::new(answers);
    let product = product(&model);
    let mut client = Client::start(&product, &["--allow", "bash"], plain());
    let session = client.session(&product.work);
    let turn = client.send_prompt(&session, "go");
    let asked = client.until(&is_time);
    client.notify("session/cancel", &json!({"sessionId": session}));
    if asked.get("id").is_some() {
        client.answer(&asked, &json!({"outcome": {"outcome": "cancelled"}}));
    }
    let answer = client.wait(turn, |_, request| panic!("{request}")).unwrap();
    assert_eq!(answer["stopReason"], "cancelled");
    let n_updates = client.updates.len();
    // The session goes on.
    let stop = client.prompt(&session, "/cost", |_, request| panic!("{request}"));
    assert_eq!(stop, "end_turn");
    let later: Vec<&Value> = client.updates[n_updates..]
        .iter()
        .map(|(_, update)| update)
        .collect();
    assert!(
        later
            .iter()
            .all(|update| update["sessionUpdate"] == "agent_message_chunk"),
        "{later:?}"
    );
    client
}

#[test]
fn a_turn_is_cancelled_while_the_model_talks() {
    let client = cancelled(vec![Answer::Hangs("well".to_owned())], |message| {
        message["params"]["update"]["content"]["text"] == "well"
    });
    assert!(client.of_kind("tool_call").is_empty());
}

#[test]
fn a_turn_is_cancelled_while_its_user_is_asked() {
    let write = calls("write", json!({"path": "a", "content": "b"}));
    let client = cancelled(vec![write], |message| {
        message["method"] == "session/request_permission"
    });
    assert_eq!(client.ended_call().1["status"], "failed");
}

#[test]
fn a_turn_is_cancelled_while_a_command_runs() {
    let sleep = calls("bash", json!({"command": "sleep 1000"}));
    let client = cancelled(vec![sleep], |message| {
        message["params"]["update"]["sessionUpdate"] == "tool_call"
    });
    assert_eq!(client.ended_call().1["status"], "failed");
}

#[test]
fn a_request_that_is_cancelled_ends_its_turn() {
    let model = Model::new([Answer::Hangs("well".to_owned())]);
    let product = product(&model);
    let mut client = Client::start(&product, &[], plain());
    let session = client.session(&product.work);
    let turn = client.send_prompt(&session, "go");
    client.until(|message| message["params"]["update"]["content"]["text"] == "well");
    client.notify("$/cancel_request", &json!({"requestId": turn}));
    let answer = client.wait(turn, |_, request| panic!("{request}")).unwrap();
    assert_eq!(answer["stopReason"], "cancelled");
}

#[test]
fn a_session_that_is_deleted_while_it_works_stays_deleted() {
    let model = Model::new([Answer::Hangs("well".to_owned())]);
    let product = product(&model);
    let mut client = Client::start(&product, &[], plain());
    let session = client.session(&product.work);
    let turn = client.send_prompt(&session, "go");
    client.until(|message| message["params"]["update"]["content"]["text"] == "well");
    let delete = client.request("session/delete", &json!({"sessionId": session}));
    let is_answer = |message: &Value| message.get("method").is_none();
    let answers = [client.until(is_answer), client.until(is_answer)];
    let of = |id: i64| answers.iter().find(|answer| answer["id"] == json!(id));
    assert_eq!(of(turn).unwrap()["result"]["stopReason"], "cancelled");
    assert_eq!(of(delete).unwrap()["result"], json!({}));
    // What the turn recorded at its end went with the session.
    let listed = client.ask("session/list", json!({})).unwrap();
    assert_eq!(listed["sessions"], json!([]));
}

/// A command that takes a moment to end keeps its turn. Meanwhile the session is neither deleted nor loaded, in whichever way it is asked.
#[test]
fn a_session_that_closes_is_loaded_and_deleted_when_it_is_closed() {
    let mark = format!("1002.{}", std::process::id());
    let command = format!("trap 'sleep 0.5; exit' TERM; sleep {mark}");
    let slow = || calls("bash", json!({ "command": command }));
    let model = Model::new([slow(), says("I remember."), slow()]);
    let product = product(&model);
    let mut client = Client::start(&product, &["--allow", "bash"], plain());
    let session = client.session(&product.work);
    let of = json!({"sessionId": session});
    let closed_while_it_works = |client: &mut Client| {
        client.send_prompt(&session, "go");
        while !runs(&mark) {
            std::thread::yield_now();
        }
        client.request("session/close", &of)
    };
    let close = closed_while_it_works(&mut client);
    let place = json!({"sessionId": session, "cwd": product.work, "mcpServers": []});
    let load = client.request("session/load", &place);
    for id in [close, load] {
        client.wait(id, |_, request| panic!("{request}")).unwrap();
    }
    let stop = client.prompt(&session, "and?", |_, request| panic!("{request}"));
    assert_eq!(stop, "end_turn");
    assert!(client.text().ends_with("I remember."), "{}", client.text());
    // The end of the turn was stored before it was loaded.
    let told = model.requests()[1]["messages"].to_string();
    assert!(told.contains("the user interrupted the turn"), "{told}");

    let close = closed_while_it_works(&mut client);
    let delete = client.request("session/delete", &of);
    for id in [close, delete] {
        client.wait(id, |_, request| panic!("{request}")).unwrap();
    }
    let listed = client.ask("session/list", json!({})).unwrap();
    assert_eq!(listed["sessions"], json!([]));

    // A load that came first is over before its session is deleted.
    let other = client.session(&product.work);
    model.add(says("Here."));
    client.prompt(&other, "hello", |_, request| panic!("{request}"));
    let place = json!({"sessionId": other, "cwd": product.work, "mcpServers": []});
    let load = client.request("session/load", &place);
    let delete = client.request("session/delete", &json!({"sessionId": other}));
    for id in [load, delete] {
        client.wait(id, |_, request| panic!("{request}")).unwrap();
    }
    let refused = client.send_prompt(&other, "and?");
    let refused = client.wait(refused, |_, request| panic!("{request}"));
    assert_eq!(refused.unwrap_err()["code"], -32602);
}

#[test]
fn who_only_looks_at_a_session_leaves_it_to_its_owner() {
    let mark = format!("1003.{}", std::process::id());
    let command = json!({"command": format!("sleep {mark}"), "background": true});
    let words = ["It runs.", "It still does.", "As I said.", "It does."].map(says);
    let model = Model::new([calls("bash", command)].into_iter().chain(words));
    let product = product(&model);
    let mut owner = Client::start(&product, &["--allow", "bash"], plain());
    let session = owner.session(&product.work);
    let goes_on = |owner: &mut Client| {
        let stop = owner.prompt(&session, "and?", |_, request| panic!("{request}"));
        assert_eq!(stop, "end_turn");
    };
    owner.prompt(&session, "go", |_, request| panic!("{request}"));
    let preview = ["run", "--resume", &session, "--show-prompt", "what now?"];
    let shown = product.run(&preview);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.stdout.contains("what now?"), "{}", shown.stdout);
    goes_on(&mut owner);

    let place = json!({"sessionId": session, "cwd": product.work, "mcpServers": []});
    let mut other = Client::start(&product, &[], plain());
    other.ask("session/load", place.clone()).unwrap();
    assert_eq!(other.leave(), Some(0));
    goes_on(&mut owner);
    assert!(runs(&mark));
    let told = model.requests().pop().unwrap()["messages"].to_string();
    assert!(!told.contains("background lost"), "{told}");

    // A load that a prompt overtakes is refused, and the prompt is not harmed.
    let load = owner.request("session/load", &place);
    let turn = owner.send_prompt(&session, "and?");
    let is_answer = |message: &Value| message.get("method").is_none();
    let answers = [owner.until(is_answer), owner.until(is_answer)];
    let of = |id: i64| answers.iter().find(|answer| answer["id"] == json!(id));
    assert!(of(load).is_some());
    let ended = of(turn).unwrap();
    assert_eq!(ended["result"]["stopReason"], "end_turn", "{ended}");
    goes_on(&mut owner);
    assert_eq!(owner.leave(), Some(0));
    assert!(!runs(&mark));
}

#[test]
fn a_client_that_dies_leaves_nothing_running() {
    let mark = format!("1000.{}", std::process::id());
    let command = format!("sleep {mark}");
    let model = Model::new([calls("bash", json!({"command": command}))]);
    let product = product(&model);
    let mut client = Client::start(&product, &["--allow", "bash"], plain());
    let session = client.session(&product.work);
    client.send_prompt(&session, "go");
    while !runs(&mark) {
        std::thread::yield_now();
    }
    client.die();
    assert_eq!(client.ended(), Some(0));
    assert!(!runs(&mark));
}

#[test]
fn a_session_that_cannot_be_loaded_stays_what_it_is() {
    let mark = format!("1001.{}", std::process::id());
    let command = json!({"command": format!("sleep {mark}"), "background": true});
    let words = ["It runs.", "It still does.", "Now it does not."].map(says);
    let model = Model::new([calls("bash", command)].into_iter().chain(words));
    let product = product(&model);
    product.file("broken/.zeph/config.toml", "x = [\n");
    let mut client = Client::start(&product, &["--allow", "bash"], plain());
    let session = client.session(&product.work);
    let place = |cwd: &Path| json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
    client.prompt(&session, "go", |_, request| panic!("{request}"));
    while !runs(&mark) {
        std::thread::yield_now();
    }
    let broken = place(&product.work.join("broken"));
    for method in ["session/load", "session/resume"] {
        let refused = client.ask(method, broken.clone()).unwrap_err();
        assert_eq!(refused["code"], -32602, "{refused}");
        assert!(runs(&mark), "{method}");
    }
    let stop = client.prompt(&session, "and?", |_, request| panic!("{request}"));
    assert_eq!(stop, "end_turn");
    // One that can be loaded takes its place.
    client.ask("session/load", place(&product.work)).unwrap();
    assert!(!runs(&mark));
    let stop = client.prompt(&session, "and?", |_, request| panic!("{request}"));
    assert_eq!(stop, "end_turn");
    assert!(client.text().ends_with("Now it does not."));
}

/// Whether a process has this argument.
fn runs(argument: &str) -> bool {
    let folders = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = folders.filter_map(|folder| std::fs::read(folder.path().join("cmdline")).ok());
    lines.into_iter().any(|line| {
        line.split(|byte| *byte == 0)
            .any(|word| word == argument.as_bytes())
    })
}

#[test]
fn commands_of_a_session_stay_where_the_operator_and_the_client_want_them() {
    let model = Model::new([]);
    let product = product(&model);
    let at = |folder: &str| product.work.join(folder);
    let all = ["a", "a/sub", "b", "c", "c/deep"].map(at);
    all.iter()
        .for_each(|path| fs::create_dir_all(path).unwrap());
    let list = |folders: &[&str]| {
        let paths = folders.iter().map(|folder| at(folder));
        json!(paths.collect::<Vec<_>>())
    };
    let files = format!("tools.file.allowed_paths={}", list(&["a", "b", "c"]));
    let commands = format!("tools.shell.allowed_paths={}", list(&["a", "c/deep"]));
    let args = ["--set", &files, "--set", &commands, "--allow", "bash"];
    let mut client = Client::start(&product, &args, plain());
    let touches = all
        .iter()
        .map(|path| format!("touch {}/mark; ", path.display()));
    let command = json!({ "command": format!("{}pwd", touches.collect::<String>()) });
    // Where a session works and what it has besides; where its commands begin, and what they can change.
    for (wanted, begins, changed) in [
        (&["a"][..], "a", &["a", "a/sub"][..]),
        (&["a/sub"], "a/sub", &["a/sub"]),
        (&["b", "a/sub"], "a/sub", &["a/sub"]),
        (&["c", "a/sub"], "c/deep", &["a/sub", "c/deep"]),
        (&["c"], "c/deep", &["c/deep"]),
        // Nothing that it wants is for commands: they work where the operator lets them.
        (&["b"], "a", &["a", "a/sub", "c/deep"]),
    ] {
        let place = json!({
            "cwd": at(wanted[0]), "mcpServers": [], "additionalDirectories": list(&wanted[1..]),
        });
        let session = client.ask("session/new", place).unwrap();
        model.add(calls("bash", command.clone()));
        model.add(says("done"));
        let session = session["sessionId"].as_str().unwrap();
        client.prompt(session, "mark", |_, request| panic!("{request}"));
        let told = model.requests().pop().unwrap().to_string();
        let begins = format!("{}\\n", at(begins).display());
        assert!(told.contains(&begins), "{wanted:?}: {told}");
        let marks = all
            .iter()
            .filter(|path| fs::remove_file(path.join("mark")).is_ok());
        let changed: Vec<_> = changed.iter().map(|folder| at(folder)).collect();
        assert_eq!(marks.cloned().collect::<Vec<_>>(), changed, "{wanted:?}");
    }
    let outside = json!({"cwd": product.home, "mcpServers": []});
    let refused = client.ask("session/new", outside).unwrap_err();
    assert_eq!(refused["code"], -32602, "{refused}");
}
