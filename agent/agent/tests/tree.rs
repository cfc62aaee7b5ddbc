//! Trees of processes, and the end of everything.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use common::{lives, script, start, wait_until, Host};
use fourwalls_protocol::{kind, request};

/// A daemon by the book: forks twice, leaves the session and the group, closes its output.
const DAEMON: &str = "(setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!' &)";

fn number(text: &str) -> u32 {
    text.lines().next().unwrap().trim().parse().unwrap()
}

fn signal(pid: u32, signal: u8, tree: bool) -> request::ExecSignal {
    request::ExecSignal {
        pid: Some(pid),
        tag: None,
        signal,
        tree,
    }
}

#[test]
fn a_tree_is_killed_with_its_daemons() {
    let mut host = Host::new();
    let (stream, pid) = host.spawn(&script(&format!("{DAEMON}; sleep 1000 & wait")));
    let daemon = number(&host.read_until(stream, "\n"));
    assert!(lives(daemon));
    let session = std::fs::read_to_string(format!("/proc/{daemon}/stat")).unwrap();
    assert!(
        !session.contains(&format!(" {pid} ")),
        "it has left: {session}"
    );
    host.ask_ok(kind::EXEC_SIGNAL, &signal(pid, 9, true));
    assert!(!lives(daemon), "the answer comes when it is done");
    assert!(!lives(pid));
    assert_eq!(host.finish(stream).exit.signal, 9);
}

#[test]
fn daemons_of_a_process_that_has_ended_are_found() {
    let mut host = Host::new();
    let (stream, pid) = host.spawn(&script(DAEMON));
    let daemon = number(&host.read_until(stream, "\n"));
    host.finish(stream);
    assert!(lives(daemon));
    host.ask_ok(kind::EXEC_SIGNAL, &signal(pid, 9, true));
    assert!(!lives(daemon));
    for number in [9, 15] {
        let error = host.ask_error(kind::EXEC_SIGNAL, &signal(pid, number, true));
        assert_eq!(error.code, "not_found");
    }
}

#[test]
fn other_trees_are_spared() {
    let mut host = Host::new();
    let (_, other) = host.spawn(&script("sleep 1000 & wait"));
    let (_, pid) = host.spawn(&script("sleep 1000 & wait"));
    host.ask_ok(kind::EXEC_SIGNAL, &signal(pid, 9, true));
    assert!(lives(other) && !lives(pid));
}

#[test]
fn a_tree_that_grows_all_the_time_is_killed() {
    let mut host = Host::new();
    let storm = "f() { (setsid sleep 76543 &); }; while :; do f; f; f; done";
    let (stream, pid) = host.spawn(&script(storm));
    std::thread::sleep(Duration::from_millis(150));
    let begin = Instant::now();
    host.ask_ok(kind::EXEC_SIGNAL, &signal(pid, 9, true));
    println!("killed in {:?}", begin.elapsed());
    host.finish(stream);
    let left = host.sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 7654[3]'");
    assert_eq!(String::from_utf8_lossy(&left.stdout).trim(), "0");
}

#[test]
fn other_signals_reach_the_tree() {
    let mut host = Host::new();
    let text = "trap 'echo parent; exit 3' TERM; sh -c 'trap \"echo child; exit\" TERM; echo up; \
                while :; do sleep 0.05; done' & while :; do sleep 0.05; done";
    let (stream, pid) = host.spawn(&script(text));
    host.read_until(stream, "up");
    host.ask_ok(kind::EXEC_SIGNAL, &signal(pid, 15, true));
    let output = host.finish(stream);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("parent") && text.contains("child"), "{text}");
    assert_eq!(output.exit.code, 3);
}

#[test]
fn a_timeout_takes_daemons_along() {
    let mut host = Host::new();
    let request = request::ExecStart {
        timeout_ms: 300,
        ..script(&format!("{DAEMON}; sleep 1000"))
    };
    let (stream, _) = host.spawn(&request);
    let daemon = number(&host.read_until(stream, "\n"));
    assert!(host.finish(stream).exit.timed_out);
    wait_until("the daemon dies", || !lives(daemon));
}

#[test]
fn orphans_are_reaped() {
    let mut host = Host::new();
    let (stream, _) = host.spawn(&script("(sh -c 'sleep 0.1' & echo $!)"));
    let orphan = number(&host.read_until(stream, "\n"));
    host.finish(stream);
    wait_until("the orphan is gone for good", || {
        !std::path::Path::new(&format!("/proc/{orphan}")).exists()
    });
}

#[test]
fn end_of_input_ends_everything() {
    let mut host = Host::new();
    let (stream, pid) = host.spawn(&script(&format!("trap '' TERM HUP; {DAEMON}; sleep 1000")));
    let daemon = number(&host.read_until(stream, "\n"));
    host.hang_up();
    let (code, words) = host.end();
    assert_eq!((code, words.as_str()), (Some(0), ""));
    assert!(!lives(pid) && !lives(daemon));
}

#[test]
fn shutdown_is_polite_first() {
    let mut host = Host::new();
    let (stream, _) = host.spawn(&script(
        "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.02; done",
    ));
    host.read_until(stream, "up");
    let begin = Instant::now();
    host.ask_ok(kind::SHUTDOWN, &request::Shutdown { grace_ms: 5_000 });
    let output = host.finish(stream);
    assert_eq!((&output.stdout[..], output.exit.code), (&b"bye\n"[..], 0));
    assert_eq!(host.end().0, Some(0));
    assert!(
        begin.elapsed() < Duration::from_secs(3),
        "nobody left to wait for"
    );
}

#[test]
fn shutdown_loses_its_patience() {
    let mut host = Host::new();
    let (stream, pid) = host.spawn(&script(
        "trap '' TERM; echo up; while :; do sleep 0.02; done",
    ));
    host.read_until(stream, "up");
    let begin = Instant::now();
    host.ask_ok(kind::SHUTDOWN, &request::Shutdown { grace_ms: 200 });
    assert_eq!(host.end().0, Some(0));
    let took = begin.elapsed();
    assert!(
        took >= Duration::from_millis(190) && took < Duration::from_secs(2),
        "{took:?}"
    );
    assert!(!lives(pid));
}

#[test]
fn an_idle_agent_does_nothing() {
    let mut host = Host::new();
    host.run(&start(&["true"]));
    let pid = host.child.id();
    let switches = || -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status
            .lines()
            .find(|l| l.starts_with("voluntary_ctxt"))
            .unwrap();
        line.split_whitespace().last().unwrap().parse().unwrap()
    };
    std::thread::sleep(Duration::from_millis(300));
    let before = switches();
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(switches(), before);
}
