//! Many streams: credit, rings, attaching, input, and what happens when the host breaks the rules.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use common::{body, bytes, lives, script, start, wait_until, Host};
use fourwalls_protocol::frame::{Frame, Header};
use fourwalls_protocol::{kind, reply, request, wire};

fn attach(pid: u32, offsets: Option<(u64, u64)>) -> request::ExecAttach {
    request::ExecAttach {
        pid: Some(pid),
        tag: None,
        offsets,
        credit: u64::MAX,
    }
}

fn small_ring(ring_bytes: u64) -> request::Hello {
    let limits = request::Limits {
        ring_bytes,
        ..Default::default()
    };
    request::Hello {
        limits,
        ..Default::default()
    }
}

fn payload(frame: &Frame) -> (u64, Vec<u8>) {
    let (offset, payload) = wire::decode_data(&frame.body).unwrap();
    (offset, payload.to_vec())
}

#[test]
fn nothing_is_sent_without_credit() {
    let mut host = Host::new();
    let mut request = script("printf 0123456789; sleep 60");
    request.credit = 4;
    let (stream, _) = host.spawn(&request);
    assert_eq!(
        payload(&host.expect(stream, kind::DATA)),
        (0, b"0123".to_vec())
    );
    assert!(host
        .next_of_within(stream, Duration::from_millis(100))
        .is_none());
    host.grant(stream, 3);
    assert_eq!(
        payload(&host.expect(stream, kind::DATA)),
        (4, b"456".to_vec())
    );
    host.grant(stream, 100);
    assert_eq!(
        payload(&host.expect(stream, kind::DATA)),
        (7, b"789".to_vec())
    );
}

#[test]
fn attach_from_an_offset_from_now_and_after_the_end() {
    let mut host = Host::new();
    let request = request::ExecStart {
        stdin: true,
        ..script("printf 0123456789; cat; exit 5")
    };
    let (first, pid) = host.spawn(&request);
    host.read_until(first, "9");
    let middle = host.open(kind::EXEC_ATTACH, &attach(pid, Some((7, 0))));
    let now = host.open(kind::EXEC_ATTACH, &attach(pid, None));
    let started: reply::Started = body(&host.expect(middle, kind::STARTED));
    assert_eq!(
        started,
        reply::Started {
            pid,
            offsets: (7, 0)
        }
    );
    let started: reply::Started = body(&host.expect(now, kind::STARTED));
    assert_eq!(started.offsets, (10, 0));
    let input = request::ExecInput {
        pid: Some(pid),
        data: bytes("abc"),
        ..Default::default()
    };
    host.ask_ok(kind::EXEC_INPUT, &input);
    host.ask_ok(
        kind::EXEC_CLOSE_STDIN,
        &request::ExecCloseStdin {
            pid: Some(pid),
            tag: None,
        },
    );
    for (stream, text) in [(middle, &b"789abc"[..]), (now, b"abc"), (first, b"abc")] {
        let output = host.finish(stream);
        assert_eq!((&output.stdout[..], output.exit.code), (text, 5));
    }
    let late = host.open(kind::EXEC_ATTACH, &attach(pid, Some((0, 0))));
    host.expect(late, kind::STARTED);
    assert_eq!(host.finish(late).stdout, b"0123456789abc");
    assert_eq!(
        host.ask_error(kind::EXEC_ATTACH, &attach(pid, Some((14, 0))))
            .code,
        "invalid"
    );
    assert_eq!(
        host.ask_error(kind::EXEC_ATTACH, &attach(1, None)).code,
        "not_found"
    );
    let neither = request::ExecAttach::default();
    assert_eq!(host.ask_error(kind::EXEC_ATTACH, &neither).code, "invalid");
    assert_eq!(host.ask_error(kind::EXEC_INPUT, &input).code, "invalid");
}

#[test]
fn without_anyone_attached_the_oldest_is_dropped() {
    let mut host = Host::with(&small_ring(1000));
    let mut request = script("head -c 500000 /dev/zero; printf end; sleep 60");
    request.credit = 0;
    request.tag = Some("flood".into());
    let (stream, pid) = host.spawn(&request);
    host.signal(kind::CANCEL, stream);
    host.expect(stream, kind::OK);
    let tagged = request::ExecAttach {
        tag: Some("flood".into()),
        offsets: Some((0, 0)),
        credit: u64::MAX,
        pid: None,
    };
    let mut offsets = (0, 0);
    wait_until("all of it was read", || {
        let stream = host.open(kind::EXEC_ATTACH, &tagged);
        let started: reply::Started = body(&host.expect(stream, kind::STARTED));
        offsets = started.offsets;
        let frame = host.next_of(stream);
        let (offset, payload) = payload(&frame);
        assert_eq!(offset, offsets.0);
        host.signal(kind::CANCEL, stream);
        while host.next_of(stream).header.kind != kind::OK {}
        payload.ends_with(b"end")
    });
    assert_eq!(
        offsets,
        (500_003 - 1000, 0),
        "the difference to 0 is the gap"
    );
    assert!(lives(pid));
}

#[test]
fn while_someone_is_attached_the_process_waits() {
    let mut host = Host::with(&small_ring(100_000));
    let mut request = script("head -c 1000000 /dev/zero; echo done >&2");
    request.credit = 10;
    let (stream, _) = host.spawn(&request);
    host.expect(stream, kind::DATA);
    assert!(
        host.next_of_within(stream, Duration::from_millis(200))
            .is_none(),
        "stderr came"
    );
    host.grant(stream, u64::MAX);
    let output = host.finish(stream);
    assert_eq!(
        (output.stdout.len(), &output.stderr[..]),
        (1_000_000 - 10, &b"done\n"[..])
    );
}

#[test]
fn a_slow_stream_holds_up_a_quick_one_but_not_others() {
    let mut host = Host::with(&small_ring(1000));
    let mut request = script("head -c 100000 /dev/zero");
    request.credit = 0;
    let (slow, pid) = host.spawn(&request);
    let quick = host.open(kind::EXEC_ATTACH, &attach(pid, Some((0, 0))));
    host.expect(quick, kind::STARTED);
    assert_eq!(host.sh("echo hi").stdout, b"hi\n");
    host.signal(kind::CANCEL, slow);
    host.expect(slow, kind::OK);
    assert_eq!(host.finish(quick).stdout.len(), 100_000);
}

#[test]
fn a_flood_does_not_delay_others() {
    let mut host = Host::new();
    let (flood, pid) = host.spawn(&start(&["cat", "/dev/zero"]));
    host.expect(flood, kind::DATA);
    let mut worst = Duration::ZERO;
    for _ in 0..20 {
        let begin = Instant::now();
        let stream = host.next_stream();
        host.signal(kind::PING, stream);
        while host.next().header.stream != stream {}
        let stream = host.open(kind::EXEC_START, &start(&["true"]));
        loop {
            let frame = host.next();
            if frame.header.stream == stream && frame.header.kind == kind::EXIT {
                break;
            }
        }
        worst = worst.max(begin.elapsed());
    }
    assert!(worst < Duration::from_millis(250), "{worst:?}");
    let signal = request::ExecSignal {
        pid: Some(pid),
        signal: 9,
        tree: true,
        tag: None,
    };
    host.ask_ok(kind::EXEC_SIGNAL, &signal);
}

#[test]
fn a_flood_without_a_reader_does_not_delay_others() {
    let mut host = Host::new();
    let mut request = start(&["cat", "/dev/zero"]);
    request.credit = 0;
    let (flood, _) = host.spawn(&request);
    host.signal(kind::CANCEL, flood);
    host.expect(flood, kind::OK);
    for _ in 0..5 {
        let begin = Instant::now();
        assert_eq!(host.sh("echo hi").stdout, b"hi\n");
        assert!(begin.elapsed() < Duration::from_millis(250));
    }
}

#[test]
fn gigabytes_arrive_quickly_and_in_order() {
    let mut host = Host::new();
    let size: u64 = if cfg!(debug_assertions) {
        300_000_000
    } else {
        5_000_000_000
    };
    let (stream, _) = host.spawn(&script(&format!("head -c {size} /dev/zero")));
    let begin = Instant::now();
    let mut expected = 0;
    loop {
        let frame = host.next_of(stream);
        match frame.header.kind {
            kind::DATA => {
                let (offset, payload) = wire::decode_data(&frame.body).unwrap();
                assert_eq!(offset, expected);
                expected += payload.len() as u64;
            }
            kind::EOF => {}
            _ => break,
        }
    }
    assert_eq!(expected, size);
    let rate = size as f64 / begin.elapsed().as_secs_f64() / 1e6;
    println!("{rate:.0} MB/s");
    assert!(rate > 100.0 || cfg!(debug_assertions), "{rate:.0} MB/s");
}

#[test]
fn input_flows_with_credit() {
    let mut host = Host::new();
    let request = request::ExecStart {
        stdin: true,
        ..start(&["wc", "-c"])
    };
    let (stream, _) = host.spawn(&request);
    let credit: request::Credit = body(&host.expect(stream, kind::CREDIT));
    assert_eq!(credit.bytes, 256 * 1024);
    let mut open = credit.bytes;
    let mut sent = 0;
    while sent < 5_000_000 {
        let count = open.min(100_000);
        if count > 0 {
            host.data(stream, sent, &vec![b'x'; count as usize]);
            sent += count;
            open -= count;
        }
        let patience = Duration::from_millis(if open > 0 { 0 } else { 5000 });
        if let Some(frame) = host.next_of_within(stream, patience) {
            assert_eq!(frame.header.kind, kind::CREDIT);
            open += body::<request::Credit>(&frame).bytes;
        }
    }
    host.frame(kind::EOF, 0, stream, Vec::new());
    assert_eq!(host.finish(stream).stdout, format!("{sent}\n").as_bytes());
}

#[test]
fn input_nobody_reads_is_bounded_and_then_let_go() {
    let mut host = Host::new();
    let request = request::ExecStart {
        stdin: true,
        ..script("exec 0<&-; echo closed; sleep 60")
    };
    let (stream, pid) = host.spawn(&request);
    let credit: request::Credit = body(&host.expect(stream, kind::CREDIT));
    host.read_until(stream, "closed");
    host.data(stream, 0, &vec![0; credit.bytes as usize]);
    host.expect(stream, kind::CREDIT);
    let input = request::ExecInput {
        pid: Some(pid),
        data: bytes("x"),
        ..Default::default()
    };
    assert_eq!(host.ask_error(kind::EXEC_INPUT, &input).code, "invalid");
    let no_input = start(&["sleep", "60"]);
    let (_, pid) = host.spawn(&no_input);
    let input = request::ExecInput {
        pid: Some(pid),
        ..input
    };
    assert_eq!(host.ask_error(kind::EXEC_INPUT, &input).code, "invalid");
}

#[test]
fn input_that_waits_is_refused_when_the_process_ends() {
    let mut host = Host::new();
    // The child holds the pipe open and reads nothing.
    let mut start = script("exec 3<&0; sleep 60 & sleep 0.3");
    start.stdin = true;
    let (_, pid) = host.spawn(&start);
    let stream = host.open(
        kind::EXEC_INPUT,
        &request::ExecInput {
            pid: Some(pid),
            data: bytes(vec![b'x'; 200_000]),
            ..Default::default()
        },
    );
    assert_eq!(host.expect_error(stream).code, "invalid");
}

#[test]
fn the_list_knows_the_running_and_the_ended() {
    let mut host = Host::new();
    let mut request = start(&["sleep", "60"]);
    request.tag = Some("t".into());
    request.env = [("X".to_owned(), bytes(b"\xfe"))].into();
    request.cwd = Some(bytes("/usr"));
    let (_, pid) = host.spawn(&request);
    let ended = host.sh("exit 9").pid;
    let list: reply::ProcessList = host.ask(kind::EXEC_LIST, &request::Nothing {});
    let [sleep, shell] = &list.processes[..] else {
        panic!("{list:?}")
    };
    assert_eq!(
        (sleep.pid, sleep.running, sleep.tag.as_deref()),
        (pid, true, Some("t"))
    );
    assert_eq!((&sleep.env, &sleep.argv), (&request.env, &request.argv));
    assert_eq!(
        (&sleep.cwd[..], sleep.user.as_str()),
        (&b"/usr"[..], "root")
    );
    assert_eq!(
        (shell.pid, shell.running, shell.code, shell.signal),
        (ended, false, 9, 0)
    );
}

#[test]
fn history_is_bounded() {
    let mut host = Host::new();
    let first = host.run(&start(&["true"])).pid;
    for _ in 0..256 {
        host.run(&start(&["true"]));
    }
    let list: reply::ProcessList = host.ask(kind::EXEC_LIST, &request::Nothing {});
    assert_eq!(list.processes.len(), 256);
    assert_eq!(
        host.ask_error(kind::EXEC_ATTACH, &attach(first, None)).code,
        "not_found"
    );
}

#[test]
fn a_new_connection_finds_the_processes_of_the_old_one() {
    let mut host = Host::new();
    let (_, pid) = host.spawn(&script("echo before; sleep 60"));
    let watch = request::FileWatch {
        path: bytes("/tmp"),
        recursive: false,
    };
    let watch = host.open(kind::FILE_WATCH, &watch);
    host.expect(watch, kind::READY);
    host.hello(&request::Hello::default());
    // Numbers start anew with the connection.
    host.send(kind::EXEC_ATTACH, watch, &attach(pid, Some((0, 0))));
    host.expect(watch, kind::STARTED);
    assert!(host.read_until(watch, "before").contains("before"));
    assert!(lives(pid));
}

#[test]
fn frames_for_streams_that_ended_are_ignored() {
    let mut host = Host::new();
    let (stream, _) = host.spawn(&start(&["true"]));
    host.finish(stream);
    host.signal(kind::CANCEL, stream);
    host.grant(stream, 5);
    host.data(stream, 7, b"late");
    host.frame(kind::EOF, 0, stream, Vec::new());
    let ping = host.next_stream();
    host.signal(kind::PING, ping);
    assert_eq!(host.next().header.stream, ping);
}

fn dies_of(what: &str, break_it: impl FnOnce(&mut Host)) {
    let mut host = Host::new();
    let (_, pid) = host.spawn(&start(&["sleep", "60"]));
    break_it(&mut host);
    let (code, words) = host.end();
    assert_eq!(code, Some(70), "{what}: {words}");
    assert!(
        words.starts_with("agent: ") && words.len() > 15,
        "{what}: {words:?}"
    );
    assert!(!lives(pid), "{what}: the process lives on");
}

#[test]
fn a_host_that_breaks_the_protocol_is_left() {
    dies_of("unknown kind", |host| host.signal(0x7f, 1));
    dies_of("kind of the other direction", |host| {
        host.signal(kind::OK, 1)
    });
    dies_of("reserved bits", |host| {
        let mut head = Header {
            length: 0,
            kind: kind::PING,
            channel: 0,
            stream: 1,
        }
        .encode();
        head[6] = 1;
        host.write(&head);
    });
    dies_of("too long", |host| {
        let head = Header {
            length: (4 << 20) + 1,
            kind: kind::DATA,
            channel: 0,
            stream: 1,
        };
        host.write(&head.encode());
    });
    dies_of("a stream twice", |host| {
        let (stream, _) = host.spawn(&start(&["sleep", "60"]));
        host.send(kind::EXEC_START, stream, &start(&["true"]));
    });
    dies_of("a request on stream 0", |host| {
        host.send(kind::EXEC_START, 0, &start(&["true"]))
    });
    dies_of("data without credit", |host| {
        let (stream, _) = host.spawn(&start(&["sleep", "60"]));
        host.data(stream, 0, b"x");
    });
    dies_of("data at the wrong offset", |host| {
        let request = request::ExecStart {
            stdin: true,
            ..start(&["sleep", "60"])
        };
        let (stream, _) = host.spawn(&request);
        host.expect(stream, kind::CREDIT);
        host.data(stream, 1, b"x");
    });
    dies_of("hello on a stream", |host| {
        host.send(kind::HELLO, 1, &request::Hello::default())
    });
    let mut host = Host::silent();
    host.signal(kind::PING, 1);
    assert_eq!(host.end().0, Some(70), "PING before HELLO");
}

#[test]
fn bodies_that_make_no_sense_are_an_error_of_the_stream() {
    let mut host = Host::new();
    let stream = host.next_stream();
    host.frame(kind::EXEC_START, 0, stream, vec![0xc1, 0xff]);
    assert_eq!(host.expect_error(stream).code, "invalid");
    let stream = host.next_stream();
    host.frame(kind::EXEC_LIST, 0, stream, Vec::new());
    assert_eq!(host.expect_error(stream).code, "invalid");
    assert_eq!(host.sh("echo on").stdout, b"on\n");
}
