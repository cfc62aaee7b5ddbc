//! Processes: start, output, end, and how a start fails.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use common::{argv, bytes, script, start, Host, Scratch};
use fourwalls_protocol::{kind, reply, request};

#[test]
fn hello_tells_who_is_there() {
    let mut host = Host::silent();
    let ok = host.hello(&request::Hello::default());
    assert_eq!(ok.pid, host.child.id());
    assert!(!ok.kernel.is_empty() && !ok.version.is_empty());
    let stream = host.next_stream();
    host.signal(kind::PING, stream);
    host.expect(stream, kind::PONG);
}

#[test]
fn hello_of_another_generation_is_refused() {
    let mut host = Host::silent();
    let hello = request::Hello {
        generation_min: 2,
        generation_max: 3,
        ..Default::default()
    };
    host.send(kind::HELLO, 0, &hello);
    assert_eq!(host.expect_error(0).code, "unsupported");
    host.hello(&request::Hello::default());
}

#[test]
fn output_and_exit() {
    let mut host = Host::new();
    let output = host.sh("printf 'a\\377b'; printf oh >&2; exit 7");
    assert_eq!(
        (&output.stdout[..], &output.stderr[..]),
        (&b"a\xffb"[..], &b"oh"[..])
    );
    let expected = reply::Exit {
        code: 7,
        ..Default::default()
    };
    assert_eq!(output.exit, expected);
    assert_eq!(host.run(&start(&["true"])).exit, reply::Exit::default());
}

#[test]
fn each_channel_ends_before_exit() {
    let mut host = Host::new();
    let (stream, _) = host.spawn(&start(&["/bin/true"]));
    let mut closed = Vec::new();
    loop {
        let frame = host.next_of(stream);
        match frame.header.kind {
            kind::EOF => closed.push(frame.header.channel),
            kind::EXIT => break,
            other => panic!("{other:#x}"),
        }
    }
    closed.sort_unstable();
    assert_eq!(closed, [kind::CHANNEL_STDOUT, kind::CHANNEL_STDERR]);
}

#[test]
fn signals_end_processes() {
    let mut host = Host::new();
    let output = host.sh("kill -TERM $$; sleep 5");
    assert_eq!((output.exit.code, output.exit.signal), (-1, 15));
    let (stream, pid) = host.spawn(&start(&["sleep", "60"]));
    let signal = request::ExecSignal {
        pid: Some(pid),
        signal: 9,
        ..Default::default()
    };
    host.ask_ok(kind::EXEC_SIGNAL, &signal);
    assert_eq!(host.finish(stream).exit.signal, 9);
    assert_eq!(host.ask_error(kind::EXEC_SIGNAL, &signal).code, "not_found");
}

#[test]
fn environment_user_and_directory() {
    let hello = request::Hello {
        env: BTreeMap::from([("A".into(), bytes("1")), ("B".into(), bytes(b"\xff"))]),
        ..Default::default()
    };
    let mut host = Host::with(&hello);
    let mut request =
        script("printf '%s,' \"$A\" \"$B\" \"$C\" \"$HOME\" \"$USER\"; pwd; id -u; umask");
    request.env = BTreeMap::from([("A".into(), bytes("2")), ("C".into(), bytes("3"))]);
    let output = host.run(&request);
    assert_eq!(output.stdout, b"2,\xff,3,/root,root,/root\n0\n0022\n");

    request.user = Some("nobody".into());
    request.cwd = Some(bytes("/usr"));
    let text = String::from_utf8_lossy(&host.run(&request).stdout).into_owned();
    assert!(text.contains("nobody,/usr\n65534\n"), "{text}");

    let mut request = script("id -G; cat /proc/self/status");
    request.user = Some("1234:4321".into());
    let text = String::from_utf8_lossy(&host.run(&request).stdout).into_owned();
    assert!(text.starts_with("4321\n"), "{text}");
    for line in [
        "Uid:\t1234\t1234\t1234\t1234",
        "SigBlk:\t0000000000000000",
        "SigIgn:\t0000000000000000",
    ] {
        assert!(text.contains(line), "{line} not in {text}");
    }
}

#[test]
fn a_home_that_is_missing_is_no_obstacle() {
    let mut host = Host::new();
    let mut request = start(&["pwd"]);
    request.user = Some("nobody".into());
    assert_eq!(host.run(&request).stdout, b"/\n");
}

#[test]
fn limits_reach_the_process() {
    let limits = request::Limits {
        nproc: 77,
        oom_score_adj: 321,
        ring_bytes: 0,
    };
    let mut host = Host::with(&request::Hello {
        limits,
        ..Default::default()
    });
    let mut request = script("cat /proc/self/oom_score_adj; cat /proc/self/limits");
    request.rlimits = BTreeMap::from([("nofile".into(), (64, 128)), ("core".into(), (0, 0))]);
    let text = String::from_utf8_lossy(&host.run(&request).stdout).into_owned();
    let squeezed: Vec<String> = text
        .lines()
        .map(|l| l.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    for line in [
        "321",
        "Max processes 77 77 processes",
        "Max open files 64 128 files",
    ] {
        assert!(squeezed.iter().any(|l| l == line), "{line} not in {text}");
    }
    let agent = std::fs::read_to_string(format!("/proc/{}/oom_score_adj", host.child.id()));
    assert_ne!(agent.unwrap().trim(), "321", "the agent keeps its own");
    request.rlimits = BTreeMap::from([("nofile".into(), (10, 5))]);
    let error = host.ask_error(kind::EXEC_START, &request);
    assert_eq!(
        (error.code.as_str(), error.stage.as_str()),
        ("start_failed", "limits")
    );
    request.rlimits = BTreeMap::from([("colour".into(), (1, 1))]);
    assert_eq!(host.ask_error(kind::EXEC_START, &request).code, "invalid");
}

#[test]
fn nothing_of_the_agent_leaks_into_processes() {
    let mut host = Host::new();
    let output = host.sh("ls /proc/self/fd | tr '\\n' ' '; readlink /proc/self/fd/0");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.starts_with("0 1 2 3 ") && text.ends_with("/dev/null\n"),
        "{text}"
    );
    assert!(!text.contains(" 4 "), "{text}");
}

fn start_error(host: &mut Host, request: &request::ExecStart) -> (String, String, i32) {
    let error = host.ask_error(kind::EXEC_START, request);
    (error.code, error.stage, error.errno)
}

fn failed(stage: &str, errno: i32) -> (String, String, i32) {
    ("start_failed".to_owned(), stage.to_owned(), errno)
}

#[test]
fn what_did_not_start_is_told_from_what_exited() {
    let scratch = Scratch::new("start");
    let mut host = Host::new();
    let host = &mut host;
    assert_eq!(
        start_error(host, &start(&["no-such-program"])),
        failed("exec", libc::ENOENT)
    );
    assert_eq!(
        start_error(host, &start(&["/no/such"])),
        failed("exec", libc::ENOENT)
    );
    assert_eq!(
        start_error(host, &start(&["/etc/passwd"])),
        failed("exec", libc::EACCES)
    );
    assert_eq!(
        start_error(host, &start(&["/etc"])),
        failed("exec", libc::EACCES)
    );
    let text = scratch.0.join("text");
    std::fs::write(&text, "not a program").unwrap();
    std::fs::set_permissions(&text, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(
        start_error(host, &start(&[text.to_str().unwrap()])),
        failed("exec", libc::ENOEXEC)
    );

    let mut request = start(&["true"]);
    request.cwd = Some(bytes("/no/such"));
    assert_eq!(start_error(host, &request), failed("cwd", libc::ENOENT));
    request.cwd = Some(bytes("/etc/passwd"));
    assert_eq!(start_error(host, &request), failed("cwd", libc::ENOTDIR));
    request.cwd = Some(bytes("relative"));
    assert_eq!(start_error(host, &request).0, "invalid");
    request.cwd = None;
    request.user = Some("nobody-of-that-name".into());
    assert_eq!(start_error(host, &request), failed("user", 0));
    request.user = None;
    request.argv = argv(&["true", &"x".repeat(3 << 20)]);
    assert_eq!(start_error(host, &request), failed("exec", libc::E2BIG));
    request.argv = Vec::new();
    assert_eq!(start_error(host, &request).0, "invalid");
    request.argv = vec![bytes("true"), bytes(b"a\0b")];
    assert_eq!(start_error(host, &request).0, "invalid");
    assert_eq!(host.sh("exit 127").exit.code, 127);
    let listed: reply::ProcessList = host.ask(kind::EXEC_LIST, &request::Nothing {});
    assert_eq!(listed.processes.len(), 1, "failed starts are in no book");
}

#[test]
fn programs_are_found_in_the_path_of_the_process() {
    let scratch = Scratch::new("path");
    let program = scratch.0.join("hi");
    std::fs::write(&program, "#!/bin/sh\necho hi\n").unwrap();
    std::fs::set_permissions(
        &program,
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let mut host = Host::new();
    let mut request = start(&["hi"]);
    assert_eq!(
        host.ask_error(kind::EXEC_START, &request).errno,
        libc::ENOENT
    );
    let path = format!("/no/such:{}", scratch.0.display());
    request.env = BTreeMap::from([("PATH".into(), bytes(path))]);
    assert_eq!(host.run(&request).stdout, b"hi\n");
    // A name with a slash is looked up from the directory of the process.
    let mut request = start(&["./hi"]);
    request.cwd = Some(scratch.path(""));
    assert_eq!(host.run(&request).stdout, b"hi\n");
}

#[test]
fn time_runs_out() {
    let mut host = Host::new();
    let mut request = script("setsid sleep 60 & sleep 60");
    request.timeout_ms = 100;
    let begin = Instant::now();
    let output = host.run(&request);
    assert!(output.exit.timed_out);
    assert_eq!((output.exit.code, output.exit.signal), (-1, 9));
    let took = begin.elapsed();
    assert!(
        took > Duration::from_millis(95) && took < Duration::from_secs(2),
        "{took:?}"
    );
    let mut request = script("exit 3");
    request.timeout_ms = 5_000;
    assert!(!host.run(&request).exit.timed_out);
}

#[test]
fn exit_does_not_wait_for_what_keeps_the_pipes_open() {
    let mut host = Host::new();
    let begin = Instant::now();
    let (stream, pid) = host.spawn(&script(
        "echo one; (sleep 0.6; echo two; sleep 60) & exit 4",
    ));
    let output = host.finish(stream);
    let took = begin.elapsed();
    assert!(
        took >= Duration::from_millis(195) && took < Duration::from_millis(550),
        "{took:?}"
    );
    assert_eq!((&output.stdout[..], output.exit.code), (&b"one\n"[..], 4));
    // What comes later stays in the ring.
    std::thread::sleep(Duration::from_millis(700));
    let attach = request::ExecAttach {
        pid: Some(pid),
        offsets: Some((0, 0)),
        credit: 1000,
        ..Default::default()
    };
    let stream = host.open(kind::EXEC_ATTACH, &attach);
    host.expect(stream, kind::STARTED);
    assert_eq!(host.finish(stream).stdout, b"one\ntwo\n");
}

#[test]
fn exit_waits_for_output_nobody_has_taken_yet() {
    let mut host = Host::new();
    let mut request = script("head -c 3000000 /dev/zero");
    request.credit = 0;
    let (stream, _) = host.spawn(&request);
    assert!(host
        .next_of_within(stream, Duration::from_millis(500))
        .is_none());
    host.grant(stream, u64::MAX);
    assert_eq!(host.finish(stream).stdout.len(), 3_000_000);
}

#[test]
fn starting_and_ending_is_quick() {
    let mut host = Host::new();
    let mut times: Vec<Duration> = (0..40)
        .map(|_| {
            let begin = Instant::now();
            assert_eq!(host.run(&start(&["/bin/true"])).exit.code, 0);
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    println!("start to exit: {:?} median, {:?} best", times[20], times[0]);
    assert!(times[20] < Duration::from_millis(20), "{:?}", times[20]);
}
