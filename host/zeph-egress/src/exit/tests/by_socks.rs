use super::*;

/// The greeting and the password, then `request`; the answer to the last.
async fn ask(lab: &Lab, token: &str, request: &[u8]) -> (TcpStream, Vec<u8>) {
    let mut stream = lab.stream().await;
    stream.write_all(&[5, 2, 0, 2]).await.unwrap();
    let mut method = [0; 2];
    stream.read_exact(&mut method).await.unwrap();
    assert_eq!(method, [5, 2]);
    let n_bytes = |text: &str| u8::try_from(text.len()).unwrap();
    let mut login = vec![1, n_bytes(USER)];
    login.extend(USER.as_bytes());
    login.push(n_bytes(token));
    login.extend(token.as_bytes());
    stream.write_all(&login).await.unwrap();
    let mut known = [0; 2];
    stream.read_exact(&mut known).await.unwrap();
    if known != [1, 0] {
        return (stream, known.to_vec());
    }
    stream.write_all(request).await.unwrap();
    let mut answer = vec![0; 10];
    stream.read_exact(&mut answer).await.unwrap();
    (stream, answer)
}

fn by_name(command: u8, name: &str, port: u16) -> Vec<u8> {
    let mut request = vec![5, command, 0, 3, u8::try_from(name.len()).unwrap()];
    request.extend(name.as_bytes());
    request.extend(port.to_be_bytes());
    request
}

#[tokio::test]
async fn a_client_of_socks_reaches_hosts_by_name() {
    let lab = Lab::new(tls(&["example.org"])).await;
    let (stream, answer) = ask(&lab, TOKEN, &by_name(1, "example.org", 443)).await;
    assert_eq!(answer, [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    let text = lab
        .fetch_over(stream, "example.org", &get("example.org"))
        .await;
    assert!(text.unwrap().contains("GET /x"));
    assert_eq!(lab.report().hosts.len(), 1);
}

#[tokio::test]
async fn nothing_else_of_socks_is_there() {
    let lab = Lab::new(tls(&["example.org"])).await;
    let by_address = [5, 1, 0, 1, 93, 184, 215, 14, 1, 187];
    let by_address_6 = [&[5, 1, 0, 4][..], &[0; 18]].concat();
    for (request, expect) in [
        (by_name(1, "example.net", 443), 2),
        (by_name(1, "127.0.0.1", 443), 2),
        (by_name(1, "example.org", 80), 2),
        (by_name(1, "example.org@example.net", 443), 2),
        (by_name(2, "example.org", 443), 7),
        (by_name(3, "example.org", 443), 7),
        (by_address.to_vec(), 8),
        (by_address_6, 8),
    ] {
        let (mut stream, answer) = ask(&lab, TOKEN, &request).await;
        assert_eq!(answer[1], expect, "{request:?}");
        drop(rest(&mut stream).await);
    }
    assert_eq!(lab.n_dialled(), 0);
    let notes = lab.report().notes;
    assert!(
        notes.iter().any(|note| note.contains("socks5h://")),
        "{notes:?}"
    );
    assert!(
        notes.contains(
            &"host example.net is not allowed; add it to [tools.sandbox] allow_hosts".to_owned()
        ),
        "{notes:?}"
    );
}

#[tokio::test]
async fn only_who_has_the_password_speaks_socks() {
    let lab = Lab::new(tls(&["example.org"])).await;
    let (_, answer) = ask(&lab, "another", &by_name(1, "example.org", 443)).await;
    assert_eq!(answer, [1, 1]);
    let mut stream = lab.stream().await;
    stream.write_all(&[5, 1, 0]).await.unwrap();
    assert_eq!(rest(&mut stream).await, [5, 0xff]);
}
