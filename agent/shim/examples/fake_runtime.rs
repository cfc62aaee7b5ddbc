//! A stand-in for a runtime and its agent, for the shim's tests: `fake_runtime PID_FILE BEHAVIOUR`
//! starts itself as the agent and returns, as a runtime with `--detach` does.

use std::io::{Read, Write};
use std::process::{exit, Command, Stdio};
use std::time::Duration;

const HEADER_BYTES: usize = 12;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["agent", behaviour] => agent(behaviour),
        ["connect", path] => connect(path),
        [pid_file, behaviour] => runtime(pid_file, behaviour),
        _ => exit(2),
    }
}

// The agent is to outlive its parent: the shim reaps it.
#[allow(clippy::zombie_processes)]
fn runtime(pid_file: &str, behaviour: &str) {
    match behaviour {
        "hang" => std::thread::sleep(Duration::from_secs(600)),
        "fail" => {
            eprintln!("the bundle is no good");
            exit(3);
        }
        "no_pid" => exit(0),
        _ => {}
    }
    if behaviour == "slow" {
        std::thread::sleep(Duration::from_millis(400));
    }
    let own = std::env::current_exe().expect("own path");
    let child = Command::new(own)
        .args(["agent", behaviour])
        .spawn()
        .expect("agent");
    std::fs::write(pid_file, format!("{}\n", child.id())).expect("pid file");
}

fn send(kind: u8, stream: u32, body: &[u8]) {
    let mut frame = header(body.len() as u32, kind, 0, stream).to_vec();
    frame.extend_from_slice(body);
    raw(&frame);
}

fn header(length: u32, kind: u8, reserved: u16, stream: u32) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[0..4].copy_from_slice(&length.to_le_bytes());
    bytes[4] = kind;
    bytes[6..8].copy_from_slice(&reserved.to_le_bytes());
    bytes[8..12].copy_from_slice(&stream.to_le_bytes());
    bytes
}

fn raw(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
        exit(1);
    }
}

fn agent(behaviour: &str) {
    match behaviour {
        "oversized" => raw(&header(2 << 20, 5, 0, 1)),
        "reserved" => raw(&header(0, 0x82, 1, 1)),
        "control" => raw(&header(0, 0xF8, 0, 0)),
        "truncated" => {
            send(0x82, 1, b"");
            raw(&header(100, 5, 0, 1));
            exit(0);
        }
        "hostile_after_good" => {
            send(0x84, 1, b"last words");
            raw(&header(0, 0xFF, 0, 0));
        }
        "leave" => exit(0),
        "stderr_flood" => {
            let line = [b'x'; 1023];
            eprintln!("first line");
            for _ in 0..8192 {
                std::io::stderr().write_all(&line).expect("stderr");
            }
            eprintln!("last line");
        }
        "deaf" => std::thread::sleep(Duration::from_secs(600)),
        "closed" => {
            // SAFETY: the agent's own descriptors, which it uses no more.
            unsafe {
                libc::close(0);
                libc::close(1);
            }
            std::thread::sleep(Duration::from_secs(600));
        }
        _ => {}
    }
    serve();
}

/// Answers frames: 0x05 and 0x02 come back, 0x10 is a shell command, 0x11 a flood of the MiB in its
/// body, 0x12 starts a fork bomb, 0x42 ends the agent.
fn serve() {
    let mut input = std::io::stdin().lock();
    loop {
        let mut head = [0; HEADER_BYTES];
        if input.read_exact(&mut head).is_err() {
            exit(0);
        }
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let stream = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        let mut body = vec![0; length as usize];
        if input.read_exact(&mut body).is_err() {
            exit(9);
        }
        match head[4] {
            0x10 => {
                let output = Command::new("/bin/sh")
                    .args(["-c", &String::from_utf8_lossy(&body)])
                    .stdin(Stdio::null())
                    .stderr(Stdio::inherit())
                    .output();
                send(
                    0x84,
                    stream,
                    &output.map(|output| output.stdout).unwrap_or_default(),
                );
            }
            0x11 => flood(u64::from(body[0]) * 4, stream),
            0x12 => bomb(stream),
            0x42 => {
                send(0x81, stream, b"");
                exit(0);
            }
            kind => send(kind, stream, &body),
        }
    }
}

/// Frames of 256 KiB, each with its number in front.
fn flood(frames: u64, stream: u32) {
    let mut body = vec![7u8; 8 + (256 << 10)];
    for number in 0..frames {
        body[..8].copy_from_slice(&number.to_le_bytes());
        send(0x05, stream, &body);
    }
    send(0x81, stream, b"");
}

/// Every process of the bomb forks as fast as it may.
fn bomb(stream: u32) {
    send(0x81, stream, b"");
    loop {
        // SAFETY: the process has one thread; the child goes on here.
        unsafe { libc::fork() };
    }
}

/// Says whether a client of this user is let in.
fn connect(path: &str) {
    let mut stream = std::os::unix::net::UnixStream::connect(path).expect("connect");
    stream
        .set_read_timeout(Some(Duration::from_millis(500)))
        .expect("timeout");
    let answer = match stream.read(&mut [0; 16]) {
        Ok(0) => "refused",
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => "refused",
        _ => "kept",
    };
    println!("{answer}");
}
