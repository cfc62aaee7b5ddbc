//! Terminals.

#![allow(clippy::unwrap_used)]

mod common;

use common::{bytes, script, start, Host};
use fourwalls_protocol::{kind, request};

fn pty(request: request::ExecStart) -> request::ExecStart {
    request::ExecStart {
        pty: Some(request::PtySize { cols: 80, rows: 24 }),
        ..request
    }
}

#[test]
fn a_terminal_with_a_size_that_changes() {
    let mut host = Host::new();
    let text = "stty size; echo $TERM; tty; trap 'stty size; exit 0' WINCH; echo up; \
                while :; do sleep 0.02; done";
    let (stream, pid) = host.spawn(&pty(script(text)));
    let text = host.read_until(stream, "up");
    assert!(
        text.starts_with("24 80\r\nxterm-256color\r\n/dev/pts/"),
        "{text:?}"
    );
    let resize = request::ExecResize {
        pid: Some(pid),
        tag: None,
        cols: 100,
        rows: 30,
    };
    host.ask_ok(kind::EXEC_RESIZE, &resize);
    let output = host.finish(stream);
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("30 100"),
        "{output:?}"
    );
    assert_eq!(host.ask_error(kind::EXEC_RESIZE, &resize).code, "invalid");
}

#[test]
fn an_interactive_shell() {
    let mut host = Host::new();
    let mut request = pty(start(&["/bin/sh", "-i"]));
    request.env = [("PS1".to_owned(), bytes("$ "))].into();
    let (stream, pid) = host.spawn(&request);
    host.read_until(stream, "$ ");
    host.data(stream, 0, b"echo $((6*7))\n");
    host.read_until(stream, "42\r\n$ ");
    // Job control is there: Ctrl-C reaches the foreground program, not the shell.
    host.data(stream, 14, b"sleep 1000\n");
    host.read_until(stream, "sleep 1000\r\n");
    std::thread::sleep(std::time::Duration::from_millis(100));
    let input = request::ExecInput {
        pid: Some(pid),
        data: bytes(b"\x03"),
        ..Default::default()
    };
    host.ask_ok(kind::EXEC_INPUT, &input);
    host.read_until(stream, "$ ");
    host.ask_ok(
        kind::EXEC_CLOSE_STDIN,
        &request::ExecCloseStdin {
            pid: Some(pid),
            tag: None,
        },
    );
    host.finish(stream);
}

#[test]
fn output_is_on_the_terminal_channel_and_belongs_to_the_user() {
    let mut host = Host::new();
    let mut request = pty(script("stat -c %U $(tty); echo oh >&2; exit 6"));
    request.user = Some("nobody".into());
    let (stream, _) = host.spawn(&request);
    let mut text = Vec::new();
    let exit = loop {
        let frame = host.next_of(stream);
        match frame.header.kind {
            kind::DATA | kind::EOF => {
                assert_eq!(frame.header.channel, kind::CHANNEL_PTY);
                text.extend_from_slice(frame.body.get(8..).unwrap_or_default());
            }
            kind::CREDIT => {}
            _ => break common::body::<fourwalls_protocol::reply::Exit>(&frame),
        }
    };
    assert_eq!((&text[..], exit.code), (&b"nobody\r\noh\r\n"[..], 6));
}

#[test]
fn all_output_of_a_program_that_ends_at_once() {
    let mut host = Host::new();
    for _ in 0..10 {
        let output = host.run(&pty(script("head -c 30000 /dev/zero | tr '\\0' x")));
        assert_eq!(output.stdout.len(), 30_000);
    }
}
