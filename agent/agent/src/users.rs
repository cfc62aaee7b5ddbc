//! Who is who: `/etc/passwd` and `/etc/group`, read by hand.
//!
//! The C library would load modules of the guest's own for this, which a static program must not.
//! The files belong to the guest: lines that make no sense are passed over.

use std::fs;

/// A user a process can run as and a file can belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Login name, or the number when there is none.
    pub name: String,
    /// Number.
    pub uid: u32,
    /// Number of the primary group.
    pub gid: u32,
    /// All groups, the primary one included.
    pub groups: Vec<u32>,
    /// Home directory.
    pub home: Vec<u8>,
    /// Login shell.
    pub shell: Vec<u8>,
}

/// The two files, as they were when read.
#[derive(Debug, Default)]
pub struct Accounts {
    passwd: Vec<u8>,
    group: Vec<u8>,
}

impl Accounts {
    /// Read both files; one that is missing is empty.
    pub fn read() -> Self {
        Self {
            passwd: fs::read("/etc/passwd").unwrap_or_default(),
            group: fs::read("/etc/group").unwrap_or_default(),
        }
    }

    /// A user by name or number, or by `number:number` for user and group. Empty is root.
    pub fn find(&self, wanted: &str) -> Option<User> {
        let wanted = if wanted.is_empty() { "root" } else { wanted };
        if let Some(user) = self.users().find(|user| user.name == wanted) {
            return Some(self.with_groups(user));
        }
        let (uid, gid) = match wanted.split_once(':') {
            Some((uid, gid)) => (uid.parse().ok()?, Some(gid.parse().ok()?)),
            None if wanted == "root" => (0, None),
            None => (wanted.parse().ok()?, None),
        };
        let known = self.users().find(|user| user.uid == uid);
        let user = known.unwrap_or_else(|| nameless(uid));
        let gid = gid.unwrap_or(user.gid);
        Some(self.with_groups(User { gid, ..user }))
    }

    /// Name of a user, or its number.
    pub fn user_name(&self, uid: u32) -> String {
        self.users()
            .find(|user| user.uid == uid)
            .map_or_else(|| uid.to_string(), |user| user.name)
    }

    /// Name of a group, or its number.
    pub fn group_name(&self, gid: u32) -> String {
        self.groups().find(|group| group.gid == gid).map_or_else(
            || gid.to_string(),
            |group| String::from_utf8_lossy(group.name).into_owned(),
        )
    }

    fn with_groups(&self, mut user: User) -> User {
        let name = user.name.as_bytes();
        user.groups = vec![user.gid];
        for group in self.groups() {
            let member = group
                .members
                .split(|byte| *byte == b',')
                .any(|member| member == name);
            if member && !user.groups.contains(&group.gid) {
                user.groups.push(group.gid);
            }
        }
        user
    }

    fn users(&self) -> impl Iterator<Item = User> + '_ {
        fields(&self.passwd).filter_map(|field| {
            let [name, _, uid, gid, _, home, shell, ..] = field[..] else {
                return None;
            };
            Some(User {
                name: String::from_utf8_lossy(name).into_owned(),
                uid: number(uid)?,
                gid: number(gid)?,
                groups: Vec::new(),
                home: or(home, b"/"),
                shell: or(shell, b"/bin/sh"),
            })
        })
    }

    fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        fields(&self.group).filter_map(|field| {
            let [name, _, gid, members, ..] = field[..] else {
                return None;
            };
            Some(Group {
                name,
                gid: number(gid)?,
                members,
            })
        })
    }
}

struct Group<'a> {
    name: &'a [u8],
    gid: u32,
    members: &'a [u8],
}

fn nameless(uid: u32) -> User {
    let root = uid == 0;
    User {
        name: if root {
            "root".to_owned()
        } else {
            uid.to_string()
        },
        uid,
        gid: if root { 0 } else { uid },
        groups: Vec::new(),
        home: if root {
            b"/root".to_vec()
        } else {
            b"/".to_vec()
        },
        shell: b"/bin/sh".to_vec(),
    }
}

fn fields(file: &[u8]) -> impl Iterator<Item = Vec<&[u8]>> {
    file.split(|byte| *byte == b'\n')
        .map(|line| line.split(|byte| *byte == b':').collect())
}

fn number(field: &[u8]) -> Option<u32> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn or(field: &[u8], default: &[u8]) -> Vec<u8> {
    if field.is_empty() {
        default.to_vec()
    } else {
        field.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts() -> Accounts {
        Accounts {
            passwd: b"root:x:0:0:root:/root:/bin/bash\n\
                # a comment\nbroken:x:\nbad:x:minus:0::/:\n\
                user:x:1000:1000:,,,:/home/user:\n\
                4711:x:12:12::/named/like/a/number:/bin/zsh\n\
                \xff\xfe:x:77:77::/odd:/bin/sh"
                .to_vec(),
            group: b"root:x:0:\nuser:x:1000:\nsudo:x:27:user,other\ndocker:x:99:other,user\n\
                nearly:x:55:users\ntwice:x:27:user\n"
                .to_vec(),
        }
    }

    #[test]
    fn by_name_with_groups() {
        let user = accounts().find("user").unwrap();
        assert_eq!((user.uid, user.gid), (1000, 1000));
        assert_eq!(user.groups, [1000, 27, 99]);
        assert_eq!(
            (&user.home[..], &user.shell[..]),
            (&b"/home/user"[..], &b"/bin/sh"[..])
        );
        assert_eq!(accounts().find("").unwrap().shell, b"/bin/bash");
    }

    #[test]
    fn by_number() {
        let user = accounts().find("1000").unwrap();
        assert_eq!(user.name, "user");
        assert_eq!(
            accounts().find("4711").unwrap().uid,
            12,
            "a name comes before a number"
        );
        let user = accounts().find("1000:27").unwrap();
        assert_eq!((user.name.as_str(), user.gid), ("user", 27));
        let user = accounts().find("3000").unwrap();
        assert_eq!(
            (user.name.as_str(), user.uid, user.gid),
            ("3000", 3000, 3000)
        );
    }

    #[test]
    fn unknown_and_senseless() {
        for name in [
            "nobody-here",
            "broken",
            "bad",
            "-1",
            "4294967296",
            "1:x",
            ":",
        ] {
            assert_eq!(accounts().find(name), None, "{name}");
        }
    }

    #[test]
    fn without_files_there_is_root() {
        let user = Accounts::default().find("root").unwrap();
        assert_eq!((user.uid, &user.home[..]), (0, &b"/root"[..]));
        assert_eq!(Accounts::default().find("user"), None);
    }

    #[test]
    fn names_of_numbers() {
        assert_eq!(accounts().user_name(1000), "user");
        assert_eq!(accounts().user_name(5), "5");
        assert_eq!(accounts().group_name(27), "sudo");
        assert_eq!(accounts().group_name(5), "5");
    }
}
