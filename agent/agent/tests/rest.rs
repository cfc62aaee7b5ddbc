//! Watches, tunnels, metrics.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use common::{body, Host, Scratch};
use fourwalls_protocol::{kind, reply, request, wire};

/// Changes on a stream until `last` has happened.
fn changes(host: &mut Host, stream: u32, last: (&str, &str)) -> Vec<(String, String)> {
    let mut all = Vec::new();
    loop {
        let events: reply::Events = body(&host.expect(stream, kind::EVENTS));
        assert!(!events.overflow);
        for event in events.events {
            let name = String::from_utf8_lossy(&event.name).into_owned();
            all.push((event.kind, name));
            let (kind, name) = all.last().unwrap();
            if (kind.as_str(), name.as_str()) == last {
                return all;
            }
        }
    }
}

fn watch(host: &mut Host, scratch: &Scratch, recursive: bool) -> u32 {
    let stream = host.open(
        kind::FILE_WATCH,
        &request::FileWatch {
            path: scratch.path(""),
            recursive,
        },
    );
    host.expect(stream, kind::READY);
    stream
}

fn has(all: &[(String, String)], kind: &str, name: &str) -> bool {
    all.iter()
        .any(|(k, n)| (k.as_str(), n.as_str()) == (kind, name))
}

#[test]
fn changes_in_a_directory() {
    let scratch = Scratch::new("watch");
    fs::create_dir(scratch.0.join("dir")).unwrap();
    let mut host = Host::new();
    let stream = watch(&mut host, &scratch, false);
    fs::write(scratch.0.join("a"), "x").unwrap();
    fs::write(scratch.0.join("dir/unseen"), "x").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(scratch.0.join("a"), mode).unwrap();
    fs::rename(scratch.0.join("a"), scratch.0.join("b")).unwrap();
    fs::remove_file(scratch.0.join("b")).unwrap();
    let all = changes(&mut host, stream, ("remove", "b"));
    let expected = [
        ("create", "a"),
        ("write", "a"),
        ("chmod", "a"),
        ("rename", "a"),
        ("create", "b"),
        ("remove", "b"),
    ];
    let shown: Vec<(&str, &str)> = all.iter().map(|(k, n)| (k.as_str(), n.as_str())).collect();
    assert_eq!(shown, expected);
    host.signal(kind::CANCEL, stream);
    host.expect(stream, kind::OK);
}

#[test]
fn changes_below_and_in_directories_made_later() {
    let scratch = Scratch::new("deep-watch");
    fs::create_dir_all(scratch.0.join("old/inner")).unwrap();
    let mut host = Host::new();
    let stream = watch(&mut host, &scratch, true);
    fs::write(scratch.0.join("old/inner/x"), "").unwrap();
    fs::create_dir_all(scratch.0.join("new/a/b/c")).unwrap();
    fs::write(scratch.0.join("new/a/b/c/quick"), "").unwrap();
    let all = changes(&mut host, stream, ("create", "new/a/b/c/quick"));
    assert!(
        has(&all, "create", "old/inner/x") && has(&all, "create", "new/a"),
        "{all:?}"
    );
    std::thread::sleep(Duration::from_millis(50));
    fs::rename(scratch.0.join("new"), scratch.0.join("moved")).unwrap();
    fs::write(scratch.0.join("moved/a/b/later"), "").unwrap();
    let all = changes(&mut host, stream, ("create", "moved/a/b/later"));
    assert!(
        has(&all, "rename", "new") && has(&all, "create", "moved"),
        "{all:?}"
    );
    let away = Scratch::new("away");
    fs::rename(scratch.0.join("moved"), away.0.join("moved")).unwrap();
    changes(&mut host, stream, ("rename", "moved"));
    fs::write(away.0.join("moved/a/b/unseen"), "").unwrap();
    fs::write(scratch.0.join("last"), "").unwrap();
    let all = changes(&mut host, stream, ("create", "last"));
    assert!(
        !all.iter().any(|(_, name)| name.contains("unseen")),
        "{all:?}"
    );
}

#[test]
fn what_cannot_be_watched() {
    let scratch = Scratch::new("unwatched");
    fs::write(scratch.0.join("file"), "").unwrap();
    let mut host = Host::new();
    for (name, code) in [("file", "not_a_directory"), ("none", "not_found")] {
        let request = request::FileWatch {
            path: scratch.path(name),
            recursive: false,
        };
        assert_eq!(host.ask_error(kind::FILE_WATCH, &request).code, code);
    }
    let stream = watch(&mut host, &scratch, true);
    fs::remove_dir_all(&scratch.0).unwrap();
    changes(&mut host, stream, ("remove", ""));
}

#[test]
fn a_storm_of_changes_is_bounded() {
    let scratch = Scratch::new("storm");
    let mut host = Host::new();
    let stream = watch(&mut host, &scratch, false);
    // Not read meanwhile: the pipe fills, then the queue, then there is an overflow.
    for i in 0..10_000 {
        fs::write(scratch.0.join(format!("{}{i}", "long".repeat(50))), "").unwrap();
    }
    let mut overflow = false;
    while let Some(frame) = host.next_of_within(stream, Duration::from_millis(300)) {
        let events: reply::Events = body(&frame);
        overflow |= events.overflow;
    }
    assert!(overflow);
    fs::write(scratch.0.join("after"), "").unwrap();
    changes(&mut host, stream, ("create", "after"));
}

fn dial(port: u16) -> request::TunnelDial {
    request::TunnelDial {
        port,
        credit: u64::MAX,
    }
}

#[test]
fn a_tunnel_both_ways() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut content = Vec::new();
        socket.read_to_end(&mut content).unwrap();
        let sum: u64 = content.iter().map(|b| u64::from(*b)).sum();
        socket
            .write_all(format!("{} {sum}", content.len()).as_bytes())
            .unwrap();
    });
    let mut host = Host::new();
    let stream = host.open(kind::TUNNEL_DIAL, &dial(port));
    host.expect(stream, kind::READY);
    let (mut open, mut sent) = (0, 0_usize);
    while sent < 3_000_000 {
        if open == 0 {
            open = body::<request::Credit>(&host.expect(stream, kind::CREDIT)).bytes as usize;
        }
        let count = open.min(50_000);
        host.data(stream, sent as u64, &vec![1; count]);
        sent += count;
        open -= count;
    }
    host.frame(kind::EOF, 0, stream, Vec::new());
    let text = format!("{sent} {sent}");
    assert_eq!(host.read_until(stream, &text), text);
    loop {
        match host.next_of(stream).header.kind {
            kind::CREDIT => {}
            kind::EOF => break,
            other => panic!("{other:#x}"),
        }
    }
    host.expect(stream, kind::OK);
    server.join().unwrap();
}

#[test]
fn a_tunnel_waits_for_credit_and_ends_when_cancelled() {
    let listener = TcpListener::bind("[::1]:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut host = Host::new();
    let stream = host.open(kind::TUNNEL_DIAL, &request::TunnelDial { port, credit: 3 });
    host.expect(stream, kind::READY);
    host.expect(stream, kind::CREDIT);
    let (mut socket, _) = listener.accept().unwrap();
    socket.write_all(b"hello").unwrap();
    let frame = host.expect(stream, kind::DATA);
    assert_eq!(wire::decode_data(&frame.body).unwrap(), (0, &b"hel"[..]));
    assert!(host
        .next_of_within(stream, Duration::from_millis(50))
        .is_none());
    host.grant(stream, 10);
    let frame = host.expect(stream, kind::DATA);
    assert_eq!(wire::decode_data(&frame.body).unwrap(), (3, &b"lo"[..]));
    host.signal(kind::CANCEL, stream);
    host.expect(stream, kind::OK);
    assert_eq!(socket.read(&mut [0]).unwrap(), 0, "hung up");
}

#[test]
fn a_port_nobody_listens_on() {
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let mut host = Host::new();
    let error = host.ask_error(kind::TUNNEL_DIAL, &dial(port));
    assert_eq!(
        (error.code.as_str(), error.errno),
        ("refused", libc::ECONNREFUSED)
    );
}

#[test]
fn metrics_make_sense() {
    let mut host = Host::new();
    let begin = Instant::now();
    let metrics: reply::Metrics = host.ask(kind::METRICS, &request::Nothing {});
    assert!(
        metrics.cpu_count >= 1 && metrics.processes >= 2,
        "{metrics:?}"
    );
    assert!(
        metrics.mem_total > metrics.mem_used && metrics.mem_used > 0,
        "{metrics:?}"
    );
    assert!(
        metrics.disk_total > metrics.disk_used && metrics.disk_used > 0,
        "{metrics:?}"
    );
    std::thread::sleep(Duration::from_millis(20));
    let later: reply::Metrics = host.ask(kind::METRICS, &request::Nothing {});
    let passed = later.uptime_ms - metrics.uptime_ms;
    assert!(passed >= 20 && u128::from(passed) <= begin.elapsed().as_millis() + 1);
}
