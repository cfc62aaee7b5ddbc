//! File requests.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::os::unix::fs::{symlink, MetadataExt, PermissionsExt};
use std::time::Duration;

use common::{body, bytes, Host, Scratch};
use fourwalls_protocol::wire::{self, Bytes};
use fourwalls_protocol::{kind, reply, request};

fn path(path: Bytes) -> request::FilePath {
    request::FilePath { path }
}

fn write(path: Bytes) -> request::FileWrite {
    request::FileWrite {
        path,
        ..Default::default()
    }
}

fn read(path: Bytes, offset: u64, length: Option<u64>) -> request::FileRead {
    request::FileRead {
        path,
        offset,
        length,
        credit: u64::MAX,
    }
}

/// Upload in pieces as credit comes.
fn upload(host: &mut Host, request: &request::FileWrite, content: &[u8]) -> reply::Entry {
    let stream = host.open(kind::FILE_WRITE, request);
    host.expect(stream, kind::READY);
    let mut open = 0;
    let mut sent = 0;
    while sent < content.len() {
        let count = open.min(content.len() - sent).min(200_000);
        if count > 0 {
            host.data(stream, sent as u64, &content[sent..sent + count]);
            sent += count;
            open -= count;
        } else {
            open += body::<request::Credit>(&host.expect(stream, kind::CREDIT)).bytes as usize;
        }
    }
    host.frame(kind::EOF, 0, stream, Vec::new());
    loop {
        let frame = host.next_of(stream);
        match frame.header.kind {
            kind::CREDIT => {}
            kind::RESULT => return body(&frame),
            _ => panic!("{frame:?}"),
        }
    }
}

fn download(host: &mut Host, request: &request::FileRead) -> (u64, Vec<u8>) {
    let stream = host.open(kind::FILE_READ, request);
    let size = body::<reply::StartedRead>(&host.expect(stream, kind::STARTED_READ)).size;
    let mut content = Vec::new();
    loop {
        let frame = host.next_of(stream);
        match frame.header.kind {
            kind::DATA => {
                let (offset, payload) = wire::decode_data(&frame.body).unwrap();
                assert_eq!(offset, request.offset + content.len() as u64);
                content.extend_from_slice(payload);
            }
            kind::OK => return (size, content),
            _ => panic!("{frame:?}"),
        }
    }
}

#[test]
fn up_and_down_again() {
    let scratch = Scratch::new("updown");
    let mut host = Host::new();
    let content: Vec<u8> = (0..5_000_000_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let target = scratch.path(b"made/on the way/caf\xe9");
    let entry = upload(&mut host, &write(target.clone()), &content);
    assert_eq!(
        (entry.size, entry.kind.as_str(), entry.mode),
        (5_000_000, "file", 0o644)
    );
    assert_eq!((&entry.name[..], &entry.path), (&b"caf\xe9"[..], &target));
    assert_eq!(
        download(&mut host, &read(target.clone(), 0, None)),
        (5_000_000, content.clone())
    );
    let part = download(&mut host, &read(target.clone(), 4_000_000, Some(10)));
    assert_eq!(part.1, &content[4_000_000..4_000_010]);
    assert_eq!(
        download(&mut host, &read(target.clone(), 6_000_000, None)).1,
        b""
    );
    assert_eq!(
        download(&mut host, &read(target.clone(), 0, Some(0))).1,
        b""
    );
    // Again, shorter: it is truncated; then added to.
    assert_eq!(upload(&mut host, &write(target.clone()), b"short").size, 5);
    let append = request::FileWrite {
        append: true,
        ..write(target.clone())
    };
    upload(&mut host, &append, b"er");
    assert_eq!(download(&mut host, &read(target, 0, None)).1, b"shorter");
    upload(&mut host, &write(scratch.path("empty")), b"");
    assert_eq!(fs::read(scratch.0.join("empty")).unwrap(), b"");
}

#[test]
fn what_is_made_belongs_to_the_user() {
    let scratch = Scratch::new("owner");
    let mut host = Host::with(&request::Hello {
        user: "nobody".into(),
        ..Default::default()
    });
    let entry = upload(&mut host, &write(scratch.path("a/b/file")), b"x");
    assert_eq!(
        (entry.uid, entry.owner.as_str(), entry.group.as_str()),
        (65534, "nobody", "nogroup")
    );
    for dir in ["a", "a/b"] {
        assert_eq!(fs::metadata(scratch.0.join(dir)).unwrap().uid(), 65534);
    }
    let request = request::FileWrite {
        user: Some("root".into()),
        mode: Some(0o4750),
        ..write(scratch.path("r"))
    };
    let entry = upload(&mut host, &request, b"x");
    assert_eq!((entry.uid, entry.mode), (0, 0o4750));
    // What was there keeps its owner.
    let entry = upload(&mut host, &write(scratch.path("r")), b"y");
    assert_eq!((entry.uid, entry.mode & 0o777), (0, 0o750));
    let unknown = request::FileWrite {
        user: Some("who?".into()),
        ..write(scratch.path("x"))
    };
    assert_eq!(host.ask_error(kind::FILE_WRITE, &unknown).code, "invalid");
    assert!(!scratch.0.join("x").exists());
    let change = request::FileChange {
        path: scratch.path("r"),
        user: Some("1234:4321".into()),
        mode: Some(0o640),
    };
    let entry: reply::Entry = host.ask(kind::FILE_CHANGE, &change);
    assert_eq!((entry.uid, entry.gid, entry.mode), (1234, 4321, 0o640));
    assert_eq!(
        (entry.owner.as_str(), entry.group.as_str()),
        ("1234", "4321")
    );
}

#[test]
fn an_upload_that_fails_or_is_given_up() {
    let scratch = Scratch::new("fail");
    let mut host = Host::new();
    fs::write(scratch.0.join("file"), "x").unwrap();
    for (name, code) in [("", "is_a_directory"), ("file/x", "not_a_directory")] {
        assert_eq!(
            host.ask_error(kind::FILE_WRITE, &write(scratch.path(name)))
                .code,
            code,
            "{name}"
        );
    }
    let stream = host.open(kind::FILE_WRITE, &write(bytes("/dev/full")));
    host.expect(stream, kind::READY);
    host.expect(stream, kind::CREDIT);
    host.data(stream, 0, b"x");
    assert_eq!(host.expect_error(stream).code, "no_space");
    host.data(stream, 1, b"more");
    let stream = host.open(kind::FILE_WRITE, &write(scratch.path("cancelled")));
    host.expect(stream, kind::READY);
    host.expect(stream, kind::CREDIT);
    host.signal(kind::CANCEL, stream);
    host.expect(stream, kind::OK);
}

#[test]
fn reading_waits_for_credit_but_the_end_needs_none() {
    let scratch = Scratch::new("credit");
    fs::write(scratch.0.join("file"), "0123456789").unwrap();
    let mut host = Host::new();
    let request = request::FileRead {
        credit: 4,
        ..read(scratch.path("file"), 0, None)
    };
    let stream = host.open(kind::FILE_READ, &request);
    host.expect(stream, kind::STARTED_READ);
    assert_eq!(&host.expect(stream, kind::DATA).body[8..], b"0123");
    assert!(host
        .next_of_within(stream, Duration::from_millis(50))
        .is_none());
    host.grant(stream, 6);
    assert_eq!(&host.expect(stream, kind::DATA).body[8..], b"456789");
    host.expect(stream, kind::OK);
    let (size, content) = download(&mut host, &read(bytes("/proc/self/status"), 0, None));
    assert!(
        size == 0 && content.starts_with(b"Name:"),
        "files of unknown size are read to the end"
    );
}

#[test]
fn what_cannot_be_read() {
    let scratch = Scratch::new("unread");
    let mut host = Host::new();
    let fifo = scratch.0.join("fifo");
    assert!(std::process::Command::new("mkfifo")
        .arg(&fifo)
        .status()
        .unwrap()
        .success());
    for (name, code) in [
        ("none", "not_found"),
        ("", "is_a_directory"),
        ("fifo", "invalid"),
    ] {
        let error = host.ask_error(kind::FILE_READ, &read(scratch.path(name), 0, None));
        assert_eq!(error.code, code, "{name}");
    }
    assert_eq!(
        host.ask_error(kind::FILE_WRITE, &write(scratch.path("fifo")))
            .errno,
        libc::ENXIO
    );
    for bad in [&b""[..], b"relative", b"/a\0b"] {
        assert_eq!(
            host.ask_error(kind::FILE_STAT, &path(bytes(bad))).code,
            "invalid"
        );
    }
}

#[test]
fn entries_tell_everything() {
    let scratch = Scratch::new("stat");
    let mut host = Host::new();
    fs::write(scratch.0.join("file"), "four").unwrap();
    fs::set_permissions(scratch.0.join("file"), PermissionsExt::from_mode(0o2644)).unwrap();
    symlink("file", scratch.0.join("link")).unwrap();
    symlink("nowhere", scratch.0.join("dangling")).unwrap();
    let entry: reply::Entry = host.ask(kind::FILE_STAT, &path(scratch.path("file")));
    let meta = fs::metadata(scratch.0.join("file")).unwrap();
    assert_eq!(
        (entry.kind.as_str(), entry.size, entry.mode),
        ("file", 4, 0o2644)
    );
    assert_eq!(
        entry.mtime_ns,
        meta.mtime() * 1_000_000_000 + meta.mtime_nsec()
    );
    assert_eq!(
        (entry.owner.as_str(), entry.group.as_str(), entry.target),
        ("root", "root", None)
    );
    let link: reply::Entry = host.ask(kind::FILE_STAT, &path(scratch.path("link")));
    assert_eq!(
        (link.kind.as_str(), link.size, link.target_kind.as_deref()),
        ("symlink", 4, Some("file"))
    );
    assert_eq!(link.target, Some(scratch.path("file")));
    let link: reply::Entry = host.ask(kind::FILE_STAT, &path(scratch.path("dangling")));
    assert_eq!(
        (link.target, link.target_kind),
        (Some(bytes("nowhere")), None)
    );
    let kinds = [("/", "dir"), ("/dev/null", "char")];
    for (name, kind) in kinds {
        let entry: reply::Entry = host.ask(kind::FILE_STAT, &path(bytes(name)));
        assert_eq!(entry.kind, kind);
    }
    let root: reply::Entry = host.ask(kind::FILE_STAT, &path(bytes("/")));
    assert_eq!(&root.name[..], b"/");
    assert_eq!(
        host.ask_error(kind::FILE_STAT, &path(scratch.path("none")))
            .code,
        "not_found"
    );
}

fn list(host: &mut Host, path: Bytes, depth: u32) -> Vec<reply::Entry> {
    let stream = host.open(kind::FILE_LIST, &request::FileList { path, depth });
    let mut entries = Vec::new();
    loop {
        let frame = host.next_of(stream);
        match frame.header.kind {
            kind::ENTRIES => {
                let more = body::<reply::Entries>(&frame).entries;
                assert!(!more.is_empty() && more.len() <= 256);
                entries.extend(more);
            }
            kind::OK => return entries,
            _ => panic!("{frame:?}"),
        }
    }
}

#[test]
fn lists_are_depth_first_in_byte_order() {
    let scratch = Scratch::new("list");
    let mut host = Host::new();
    fs::create_dir_all(scratch.0.join("b/inner")).unwrap();
    fs::write(scratch.0.join("b/inner/deep"), "").unwrap();
    fs::write(scratch.0.join("a"), "").unwrap();
    fs::write(scratch.0.join("b.txt"), "").unwrap();
    symlink("b", scratch.0.join("c")).unwrap();
    use std::os::unix::ffi::OsStrExt;
    fs::write(scratch.0.join(std::ffi::OsStr::from_bytes(b"z\xff")), "").unwrap();
    let prefix = scratch.path("").len();
    let mut names = |depth| -> Vec<Vec<u8>> {
        let entries = list(&mut host, scratch.path(""), depth);
        entries.iter().map(|e| e.path[prefix..].to_vec()).collect()
    };
    assert_eq!(names(1), [&b"a"[..], b"b", b"b.txt", b"c", b"z\xff"]);
    assert_eq!(
        names(2),
        [&b"a"[..], b"b", b"b/inner", b"b.txt", b"c", b"z\xff"]
    );
    assert_eq!(names(9).len(), 7);
    let entries = list(&mut host, scratch.path("c"), 1);
    assert_eq!(
        entries[0].path,
        scratch.path("c/inner"),
        "as asked, not resolved"
    );
    let listing = |path, depth| request::FileList { path, depth };
    assert_eq!(
        host.ask_error(kind::FILE_LIST, &listing(scratch.path("a"), 1))
            .code,
        "not_a_directory"
    );
    assert_eq!(
        host.ask_error(kind::FILE_LIST, &listing(scratch.path("x"), 1))
            .code,
        "not_found"
    );
    assert_eq!(
        host.ask_error(kind::FILE_LIST, &listing(scratch.path(""), 0))
            .code,
        "invalid"
    );
}

#[test]
fn long_lists_come_in_pieces() {
    let scratch = Scratch::new("long");
    for i in 0..1000 {
        fs::write(scratch.0.join(format!("{}{i}", "n".repeat(200))), "").unwrap();
    }
    let mut host = Host::new();
    assert_eq!(list(&mut host, scratch.path(""), 1).len(), 1000);
    assert!(list(&mut host, scratch.path(""), 1).is_sorted_by(|a, b| a.name < b.name));
}

#[test]
fn directories_are_made_with_their_parents() {
    let scratch = Scratch::new("mkdir");
    let mut host = Host::new();
    let request = |name: &str, mode| request::FileMkdir {
        path: scratch.path(name),
        user: None,
        mode,
    };
    let made: reply::MkdirResult = host.ask(kind::FILE_MKDIR, &request("a/b/c", Some(0o700)));
    assert!(made.created);
    assert_eq!((made.entry.kind.as_str(), made.entry.mode), ("dir", 0o700));
    assert_eq!(
        fs::metadata(scratch.0.join("a/b")).unwrap().mode() & 0o7777,
        0o755
    );
    let made: reply::MkdirResult = host.ask(kind::FILE_MKDIR, &request("a/b/c", Some(0o777)));
    assert!(
        !made.created && made.entry.mode == 0o700,
        "what is there is left as it is"
    );
    fs::write(scratch.0.join("file"), "").unwrap();
    assert_eq!(
        host.ask_error(kind::FILE_MKDIR, &request("file", None))
            .code,
        "not_a_directory"
    );
    assert_eq!(
        host.ask_error(kind::FILE_MKDIR, &request("file/x", None))
            .code,
        "not_a_directory"
    );
}

#[test]
fn moves() {
    let scratch = Scratch::new("move");
    let mut host = Host::new();
    fs::write(scratch.0.join("a"), "content").unwrap();
    let request = |from: &str, to: &str| request::FileMove {
        source: scratch.path(from),
        destination: scratch.path(to),
        user: None,
    };
    let entry: reply::Entry = host.ask(kind::FILE_MOVE, &request("a", "new/b"));
    assert_eq!(entry.path, scratch.path("new/b"));
    assert_eq!(fs::read(scratch.0.join("new/b")).unwrap(), b"content");
    assert_eq!(
        host.ask_error(kind::FILE_MOVE, &request("a", "other/c"))
            .code,
        "not_found"
    );
    assert!(!scratch.0.join("other").exists());
    // To another file system, a whole tree.
    fs::create_dir_all(scratch.0.join("tree/dir")).unwrap();
    fs::write(scratch.0.join("tree/dir/file"), "x").unwrap();
    fs::set_permissions(
        scratch.0.join("tree/dir/file"),
        PermissionsExt::from_mode(0o640),
    )
    .unwrap();
    symlink("dir/file", scratch.0.join("tree/link")).unwrap();
    std::os::unix::fs::chown(scratch.0.join("tree/dir"), Some(12), Some(34)).unwrap();
    let before = fs::metadata(scratch.0.join("tree/dir/file")).unwrap();
    let away = std::path::PathBuf::from(format!("/dev/shm/fw-agent-{}", std::process::id()));
    let request = request::FileMove {
        destination: bytes(away.to_str().unwrap()),
        ..request("tree", "")
    };
    let entry: reply::Entry = host.ask(kind::FILE_MOVE, &request);
    assert_eq!(entry.kind, "dir");
    let after = fs::metadata(away.join("dir/file")).unwrap();
    assert_eq!(
        (after.mode(), after.mtime_nsec()),
        (before.mode(), before.mtime_nsec())
    );
    assert_eq!(fs::metadata(away.join("dir")).unwrap().gid(), 34);
    assert_eq!(
        fs::read_link(away.join("link")).unwrap().to_str(),
        Some("dir/file")
    );
    assert!(!scratch.0.join("tree").exists());
    fs::remove_dir_all(away).unwrap();
}

#[test]
fn removing_never_follows_a_symlink() {
    let scratch = Scratch::new("remove");
    let mut host = Host::new();
    fs::create_dir_all(scratch.0.join("keep")).unwrap();
    fs::write(scratch.0.join("keep/file"), "").unwrap();
    let tree = scratch.0.join("tree");
    fs::create_dir_all(tree.join("a/b")).unwrap();
    symlink("../keep", tree.join("link")).unwrap();
    symlink(scratch.0.join("keep"), tree.join("a/link")).unwrap();
    for i in 0..300 {
        fs::create_dir(tree.join(format!("dir{i}"))).unwrap();
        fs::write(tree.join(format!("dir{i}/file")), "").unwrap();
    }
    let mut remove = |name: &str| -> bool {
        host.ask::<_, reply::RemoveResult>(kind::FILE_REMOVE, &path(scratch.path(name)))
            .existed
    };
    assert!(remove("tree"));
    assert!(!tree.exists() && scratch.0.join("keep/file").exists());
    assert!(!remove("tree"));
    assert!(!remove("none/at/all"));
    symlink("keep", scratch.0.join("link")).unwrap();
    assert!(remove("link"));
    assert!(scratch.0.join("keep/file").exists());
    assert!(remove("keep/file"));
    assert_eq!(
        host.ask_error(kind::FILE_REMOVE, &path(bytes("/"))).code,
        "busy"
    );
}

#[test]
fn trees_of_any_depth_are_removed() {
    let scratch = Scratch::new("deep");
    let mut host = Host::new();
    // Deeper than a path can say and than descriptors can be open.
    let mut request = common::start(&["python3", "-c", ""]);
    request.argv[2] = bytes(format!(
        "import os\nos.chdir({:?})\nos.mkdir('top'); os.chdir('top')\n\
         for i in range(3000): os.mkdir('d'); os.chdir('d')\nopen('leaf','w')",
        scratch.0.display()
    ));
    assert_eq!(host.run(&request).exit.code, 0);
    let removed: reply::RemoveResult = host.ask(kind::FILE_REMOVE, &path(scratch.path("top")));
    assert!(removed.existed && !scratch.0.join("top").exists());
}
