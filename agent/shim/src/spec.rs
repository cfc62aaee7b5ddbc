//! The launch specification: everything the shim does stands in it.

use std::os::fd::BorrowedFd;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use crate::sys::{self, Context, Result};

/// Far more than a specification needs, and little enough to read at once.
const SPEC_LIMIT: usize = 4 << 20;

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Embedded,
    Server,
}

#[derive(Debug, Deserialize)]
pub struct Spec {
    pub version: u32,
    pub id: String,
    pub mode: Mode,
    pub dir: PathBuf,
    pub cgroup: CgroupSpec,
    #[serde(default)]
    pub mounts: Vec<Step>,
    pub argv: Vec<String>,
    #[serde(default)]
    pub env: Vec<(String, String)>,
    pub pid_file: PathBuf,
    #[serde(default)]
    pub membarrier_filter: bool,
    #[serde(default)]
    pub cleanup: Vec<PathBuf>,
    #[serde(default)]
    pub release: Vec<PathBuf>,
    #[serde(default)]
    pub lease_deadline_ns: u64,
    pub start_timeout_ms: u64,
}

#[derive(Debug, Deserialize)]
pub struct CgroupSpec {
    pub version: u32,
    #[serde(default)]
    pub groups: Vec<GroupSpec>,
    #[serde(default)]
    pub device_filter: bool,
    #[serde(default)]
    pub group_oom: bool,
    #[serde(default)]
    pub oom: String,
    #[serde(default)]
    pub pids: String,
}

#[derive(Debug, Deserialize)]
pub struct GroupSpec {
    pub path: PathBuf,
    #[serde(default)]
    pub files: Vec<(String, String)>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Step {
    TmpfsOver {
        target: PathBuf,
    },
    Mkdir {
        path: PathBuf,
        mode: u32,
        uid: u32,
        gid: u32,
    },
    Disk {
        image: PathBuf,
        template: PathBuf,
        size: u64,
        target: PathBuf,
    },
    BindIdmapped {
        source: PathBuf,
        target: PathBuf,
        base: u32,
        count: u32,
        #[serde(default)]
        suid: bool,
    },
    Overlay {
        lower: PathBuf,
        upper: PathBuf,
        work: PathBuf,
        target: PathBuf,
    },
}

impl Spec {
    pub fn read(fd: BorrowedFd<'_>) -> Result<Spec> {
        let mut bytes = Vec::new();
        let mut chunk = [0u8; 16 << 10];
        loop {
            match sys::read(fd, &mut chunk) {
                Ok(0) => break,
                Ok(size) => bytes.extend_from_slice(&chunk[..size]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("reading the specification: {error}")),
            }
            if bytes.len() > SPEC_LIMIT {
                return Err(format!(
                    "the specification is larger than {SPEC_LIMIT} bytes"
                ));
            }
        }
        let spec: Spec = rmp_serde::from_slice(&bytes).context(|| "decoding the specification")?;
        spec.check()?;
        Ok(spec)
    }

    /// The writer is trusted; this only keeps its mistakes from reaching further than the sandbox.
    fn check(&self) -> Result<()> {
        if self.version != 1 {
            return Err(format!(
                "specification version {}, this shim reads 1",
                self.version
            ));
        }
        if self.id.is_empty() || self.id.contains('/') {
            return Err("the id is empty or holds a slash".to_owned());
        }
        match self.argv.first() {
            Some(program) => absolute("argv[0]", Path::new(program))?,
            None => return Err("argv is empty".to_owned()),
        }
        absolute("dir", &self.dir)?;
        absolute("pid_file", &self.pid_file)?;
        for path in self.cleanup.iter().chain(&self.release) {
            absolute("cleanup or release", path)?;
        }
        if !matches!(self.cgroup.version, 1 | 2) {
            return Err(format!("cgroup version {}", self.cgroup.version));
        }
        if self.cgroup.version == 2 && self.cgroup.groups.len() > 1 {
            return Err("more than one group in the one hierarchy of cgroup 2".to_owned());
        }
        for group in &self.cgroup.groups {
            absolute("cgroup", &group.path)?;
            if group
                .files
                .iter()
                .any(|(name, _)| name.is_empty() || name.contains('/'))
            {
                return Err(format!(
                    "a bad file name for the group {}",
                    group.path.display()
                ));
            }
        }
        self.mounts
            .iter()
            .flat_map(Step::paths)
            .try_for_each(|path| absolute("mounts", path))
    }
}

impl Step {
    fn paths(&self) -> Vec<&Path> {
        match self {
            Step::TmpfsOver { target } => vec![target],
            Step::Mkdir { path, .. } => vec![path],
            Step::Disk {
                image,
                template,
                target,
                ..
            } => vec![image, template, target],
            Step::BindIdmapped { source, target, .. } => vec![source, target],
            Step::Overlay {
                lower,
                upper,
                work,
                target,
            } => vec![lower, upper, work, target],
        }
    }
}

fn absolute(what: &str, path: &Path) -> Result<()> {
    let climbs = path.components().any(|part| part == Component::ParentDir);
    // The root itself is never meant by any of the paths.
    if !path.is_absolute() || climbs || path.components().count() < 2 {
        return Err(format!(
            "{what}: {} is not an absolute path below /",
            path.display()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_must_be_absolute_and_plain() {
        assert!(absolute("x", Path::new("/a/b")).is_ok());
        for bad in ["", "a", "/", "/a/../b", "//"] {
            assert!(absolute("x", Path::new(bad)).is_err(), "{bad}");
        }
    }
}
