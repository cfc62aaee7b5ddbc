//! Starts shims over the fake runtime and speaks to them as a host does. Needs root.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::{json, Value};

pub const PATIENCE: Duration = Duration::from_secs(15);
pub const STATE: u8 = 0xF8;
pub const GONE: u8 = 0xF9;

pub struct Shim {
    pub process: Child,
    pub client: UnixStream,
    pub dir: PathBuf,
    pub groups: Vec<PathBuf>,
    base: PathBuf,
}

pub struct Frame {
    pub kind: u8,
    pub stream: u32,
    pub body: Vec<u8>,
}

impl Frame {
    pub fn value(&self) -> Value {
        rmp_serde::from_slice(&self.body).unwrap()
    }
}

/// An example of this package, which `cargo test` builds along (not so with `--test NAME`).
pub fn fake_runtime() -> PathBuf {
    let shim = Path::new(env!("CARGO_BIN_EXE_fourwalls-shim"));
    shim.with_file_name("examples").join("fake_runtime")
}

/// A place of its own for each test, and the specification that starts `behaviour` there.
pub struct Plan {
    pub spec: Value,
    pub dir: PathBuf,
    base: PathBuf,
}

impl Plan {
    pub fn new(behaviour: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        // SAFETY: cannot fail and touches no memory.
        let user = unsafe { libc::geteuid() };
        assert_eq!(user, 0, "these tests build mounts: run them as root");
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let id = format!("shimtest-{}-{number}", std::process::id());
        let base = PathBuf::from("/var/tmp").join(&id);
        let dir = base.join("sandbox");
        std::fs::create_dir_all(&base).unwrap();
        std::fs::DirBuilder::new().mode(0o700).create(&dir).unwrap();
        let pid_file = dir.join("pid");
        let spec = json!({
            "version": 1,
            "id": id,
            "mode": "embedded",
            "dir": dir,
            "cgroup": {"version": 1, "groups": [], "device_filter": false, "oom": "", "pids": ""},
            "mounts": [],
            "argv": [fake_runtime(), pid_file, behaviour],
            "env": [["PATH", "/usr/sbin:/usr/bin:/sbin:/bin"]],
            "pid_file": pid_file,
            "membarrier_filter": false,
            "cleanup": [],
            "release": [],
            "lease_deadline_ns": 0,
            "start_timeout_ms": 10_000,
        });
        Plan { spec, dir, base }
    }

    pub fn server(mut self) -> Self {
        self.spec["mode"] = json!("server");
        self
    }

    pub fn with(mut self, key: &str, value: Value) -> Self {
        self.spec[key] = value;
        self
    }

    pub fn id(&self) -> String {
        self.spec["id"].as_str().unwrap().to_owned()
    }

    /// Groups in every hierarchy of this machine that the tests know, limited to `pids` processes.
    pub fn with_groups(mut self, pids: u32) -> Self {
        let id = self.id();
        let mut groups = Vec::new();
        let mut group = |root: &str, files: Value| {
            if Path::new(root).exists() {
                groups.push(
                    json!({"path": format!("{root}/fourwalls-shimtest/{id}"), "files": files}),
                );
            }
        };
        let version = if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
            2
        } else {
            1
        };
        let limit = json!([["pids.max", pids.to_string()]]);
        if version == 2 {
            group("/sys/fs/cgroup", limit);
        } else {
            group("/sys/fs/cgroup/memory", json!([]));
            group("/sys/fs/cgroup/freezer", json!([]));
            group("/sys/fs/cgroup/pids", limit);
        }
        let path = |index: usize| groups[index]["path"].as_str().unwrap().to_owned();
        let (oom, counter) = match version {
            2 => (path(0) + "/memory.events", path(0) + "/pids.events"),
            _ => (path(0) + "/memory.oom_control", path(2) + "/pids.events"),
        };
        self.spec["cgroup"] = json!({
            "version": version, "groups": groups, "device_filter": false, "oom": oom, "pids": counter,
        });
        self
    }

    pub fn start(self) -> Shim {
        let specification = rmp_serde::to_vec_named(&self.spec).unwrap();
        self.start_with(&specification)
    }

    pub fn start_with(self, specification: &[u8]) -> Shim {
        let (client, theirs) = UnixStream::pair().unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let lock = std::fs::File::create(self.dir.join("lock")).unwrap();
        let inherited = [theirs.as_raw_fd(), lock.as_raw_fd()];
        let mut command = Command::new(env!("CARGO_BIN_EXE_fourwalls-shim"));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit());
        // SAFETY: only calls that are allowed between fork and exec.
        unsafe {
            command.pre_exec(move || {
                // Out of each other's way first, then to their places.
                let copies = inherited.map(|fd| libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 100));
                for (copy, target) in copies.into_iter().zip(3..) {
                    if libc::dup2(copy, target) < 0 {
                        return Err(std::io::Error::last_os_error());
                    }
                }
                Ok(())
            });
        }
        let mut process = command.spawn().unwrap();
        process
            .stdin
            .take()
            .unwrap()
            .write_all(specification)
            .unwrap();
        let groups = self.spec["cgroup"]["groups"]
            .as_array()
            .into_iter()
            .flatten();
        let groups = groups
            .map(|group| PathBuf::from(group["path"].as_str().unwrap()))
            .collect();
        Shim {
            process,
            client,
            dir: self.dir,
            groups,
            base: self.base,
        }
    }
}

pub fn frame(kind: u8, stream: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
    bytes.extend([kind, 0, 0, 0]);
    bytes.extend(stream.to_le_bytes());
    bytes.extend(body);
    bytes
}

pub fn control(kind: u8, body: Value) -> Vec<u8> {
    frame(kind, 0, &rmp_serde::to_vec_named(&body).unwrap())
}

pub fn receive(client: &mut UnixStream) -> std::io::Result<Frame> {
    let mut head = [0; 12];
    client.read_exact(&mut head)?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    assert!(length <= 1 << 20, "a frame of {length} bytes: out of step");
    assert_eq!(head[6..8], [0, 0], "reserved field: out of step");
    let mut body = vec![0; length as usize];
    client.read_exact(&mut body)?;
    let stream = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
    Ok(Frame {
        kind: head[4],
        stream,
        body,
    })
}

impl Shim {
    pub fn send(&mut self, bytes: &[u8]) {
        self.client.write_all(bytes).unwrap();
    }

    /// The next frame of a kind; frames before it are dropped.
    pub fn wait_for(&mut self, kind: u8) -> Frame {
        loop {
            let frame = receive(&mut self.client).unwrap();
            if frame.kind == kind {
                return frame;
            }
            assert_ne!(frame.kind, GONE, "{}", frame.value());
        }
    }

    pub fn running(mut self) -> Self {
        let state = self.wait_for(STATE).value();
        assert_eq!(state["phase"], "running");
        assert_eq!(state["shim_pid"], self.process.id());
        self
    }

    /// What a shell in the sandbox's mount namespace and groups prints.
    pub fn shell(&mut self, command: &str) -> String {
        self.send(&frame(0x10, 77, command.as_bytes()));
        let output = self.wait_for(0x84);
        assert_eq!(output.stream, 77);
        String::from_utf8(output.body).unwrap().trim().to_owned()
    }

    pub fn echo(&mut self, text: &[u8]) {
        self.send(&frame(0x05, 5, text));
        assert_eq!(self.wait_for(0x05).body, text);
    }

    pub fn kill(&mut self) -> Value {
        self.send(&control(0xF1, json!({"cause": "killed"})));
        self.gone()
    }

    /// Reads to the end: the record, after which nothing comes.
    pub fn gone(&mut self) -> Value {
        let record = loop {
            let frame = receive(&mut self.client).expect("a GONE before the end");
            if frame.kind == GONE {
                break frame.value();
            }
        };
        let rest = self.client.read(&mut [0; 1]);
        assert!(matches!(rest, Ok(0)), "{rest:?} after GONE");
        let status = self.process.wait().unwrap();
        assert!(status.success(), "{status}");
        self.assert_nothing_left();
        record
    }

    pub fn connect(&self) -> UnixStream {
        let client = UnixStream::connect(self.dir.join("agent.sock")).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client
    }

    pub fn reconnect(&mut self) {
        self.client = self.connect();
    }

    pub fn exit_record(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.dir.join("exit.json")).unwrap()).unwrap()
    }

    pub fn assert_nothing_left(&self) {
        for group in &self.groups {
            assert!(!group.exists(), "{} is left", group.display());
        }
        eventually("no loop device", || loop_devices(&self.base).is_empty());
    }

    pub fn loop_devices(&self) -> Vec<PathBuf> {
        loop_devices(&self.base)
    }

    /// Private memory of the shim, in KiB.
    pub fn private_memory(&self) -> u64 {
        memory(self.process.id())["Private_Dirty"]
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        for group in &self.groups {
            // After a failed test: the agent leaves with its pipes, a moment later.
            let deadline = Instant::now() + Duration::from_secs(2);
            while std::fs::remove_dir(group).is_err() && group.exists() && Instant::now() < deadline
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            // The parent goes with its last user.
            let _ = group.parent().map(std::fs::remove_dir);
        }
        let _ = std::fs::remove_dir_all(&self.base);
    }
}

fn memory(pid: u32) -> BTreeMap<String, u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let pair = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        Some((
            name.to_owned(),
            rest.split_ascii_whitespace().next()?.parse().ok()?,
        ))
    };
    text.lines().filter_map(pair).collect()
}

/// Loop devices over files below a directory.
fn loop_devices(base: &Path) -> Vec<PathBuf> {
    let base = base.to_str().unwrap();
    std::fs::read_dir("/sys/block")
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let backing = std::fs::read_to_string(path.join("loop/backing_file"));
            backing.is_ok_and(|backing| backing.starts_with(base))
        })
        .collect()
}

pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "never came true: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn boot_time_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A formatted image all tests share.
pub fn template() -> &'static Path {
    static TEMPLATE: OnceLock<PathBuf> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("template.ext4");
        std::fs::File::create(&path)
            .unwrap()
            .set_len(64 << 20)
            .unwrap();
        let done = Command::new("mkfs.ext4")
            .args(["-q", "-F"])
            .arg(&path)
            .status()
            .unwrap();
        assert!(done.success());
        path
    })
}
