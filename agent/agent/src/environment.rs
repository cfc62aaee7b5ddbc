//! Environment and search path of a process that is about to start.

use std::collections::BTreeMap;
use std::ffi::CString;

use fourwalls_protocol::request::Environment;

use crate::failure::Failure;
use crate::users::User;

/// Name of the variable that marks all that descends from one request.
pub const MARKER: &str = "FOURWALLS_EXEC";

const DEFAULT_PATH: &[u8] = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What a process finds in its environment; later sources win over earlier ones.
pub fn merge(
    user: &User,
    default: &Environment,
    own: &Environment,
    pty: bool,
    marker: &str,
) -> Result<Vec<CString>, Failure> {
    let mut values: BTreeMap<&str, &[u8]> = BTreeMap::from([
        ("PATH", DEFAULT_PATH),
        ("HOME", &user.home[..]),
        ("USER", user.name.as_bytes()),
        ("LOGNAME", user.name.as_bytes()),
        ("SHELL", &user.shell[..]),
    ]);
    if pty {
        values.insert("TERM", b"xterm-256color");
    }
    for (name, value) in default.iter().chain(own) {
        if name.is_empty() || name.contains('=') {
            return Err(Failure::invalid(format!("{name:?} cannot name a variable")));
        }
        values.insert(name, value);
    }
    values.remove(MARKER);
    // First, where a scan finds it soonest.
    std::iter::once((MARKER, marker.as_bytes()))
        .chain(values)
        .map(|(name, value)| {
            let line = [name.as_bytes(), b"=", value].concat();
            CString::new(line).map_err(|_| Failure::invalid(format!("{name} holds a NUL byte")))
        })
        .collect()
}

/// The files a program name may mean, in the order they are tried.
pub fn candidates(program: &CString, env: &[CString]) -> Vec<CString> {
    let name = program.as_bytes();
    if name.contains(&b'/') {
        return vec![program.clone()];
    }
    let path = env
        .iter()
        .find_map(|line| line.as_bytes().strip_prefix(b"PATH="));
    path.unwrap_or(DEFAULT_PATH)
        .split(|byte| *byte == b':')
        .filter_map(|dir| {
            // An empty part is the current directory.
            let dir = if dir.is_empty() { b".".as_slice() } else { dir };
            CString::new([dir, b"/", name].concat()).ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use fourwalls_protocol::wire::Bytes;

    use super::*;

    fn user() -> User {
        User {
            name: "user".into(),
            uid: 1000,
            gid: 1000,
            groups: vec![1000],
            home: b"/home/user".to_vec(),
            shell: b"/bin/bash".to_vec(),
        }
    }

    fn env(pairs: &[(&str, &[u8])]) -> Environment {
        pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), Bytes::from(v.to_vec())))
            .collect()
    }

    #[test]
    fn later_sources_win() {
        let default = env(&[("HOME", b"/d"), ("A", b"1"), ("FOURWALLS_EXEC", b"forged")]);
        let own = env(&[("A", b"\xff"), ("FOURWALLS_EXEC", b"forged")]);
        let lines = merge(&user(), &default, &own, true, "m").unwrap();
        let lines: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
        assert_eq!(lines[0], b"FOURWALLS_EXEC=m");
        for line in [
            &b"HOME=/d"[..],
            b"A=\xff",
            b"USER=user",
            b"TERM=xterm-256color",
        ] {
            assert!(lines.contains(&line), "{}", String::from_utf8_lossy(line));
        }
        assert_eq!(
            lines
                .iter()
                .filter(|line| line.starts_with(b"FOURWALLS_EXEC"))
                .count(),
            1
        );
    }

    #[test]
    fn senseless_names_and_values() {
        for bad in [
            env(&[("A=B", b"")]),
            env(&[("", b"")]),
            env(&[("A", b"\0")]),
            env(&[("A\0", b"")]),
        ] {
            assert_eq!(
                merge(&user(), &bad, &env(&[]), false, "m")
                    .unwrap_err()
                    .code,
                "invalid"
            );
        }
    }

    #[test]
    fn search_path() {
        let find = |name: &str, path: &str| -> Vec<String> {
            let env = [CString::new(format!("PATH={path}")).unwrap()];
            let found = candidates(&CString::new(name).unwrap(), &env);
            found
                .into_iter()
                .map(|path| path.into_string().unwrap())
                .collect()
        };
        assert_eq!(find("./x", "/a"), ["./x"]);
        assert_eq!(find("x", "/a::b"), ["/a/x", "./x", "b/x"]);
    }
}
