//! The sandbox's file system, built in a mount namespace of the shim's own: whatever happens to the
//! shim, its mounts go with it.

pub mod disk;
pub mod idmap;
pub mod overlay;

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::spec::Step;
use crate::sys::{self, Context, Result};

/// What has been mounted so far, in order.
#[derive(Default)]
pub struct Mounts {
    targets: Vec<PathBuf>,
    user_namespaces: idmap::UserNamespaces,
    disks: Vec<OwnedFd>,
}

impl Mounts {
    /// Leaves the caller's mount namespace. Mounts made outside later (a new image) still arrive,
    /// nothing made here travels out.
    pub fn enter_namespace() -> Result<()> {
        // SAFETY: the process has one thread; unsharing concerns nobody else.
        sys::check(unsafe { libc::unshare(libc::CLONE_NEWNS) }.into())
            .context(|| "unsharing the mount namespace")?;
        sys::mount(
            "none",
            Path::new("/"),
            "none",
            libc::MS_REC | libc::MS_SLAVE,
            "",
        )
        .context(|| "making the mounts rslave")
    }

    pub fn perform(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::TmpfsOver { target } => {
                let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
                sys::mount("none", target, "tmpfs", flags, "size=1m,mode=755")
                    .context(|| format!("tmpfs over {}", target.display()))?;
                self.targets.push(target.clone());
            }
            Step::Mkdir {
                path,
                mode,
                uid,
                gid,
            } => {
                make_directory(path, *mode, *uid, *gid)
                    .context(|| format!("directory {}", path.display()))?;
            }
            Step::Disk {
                image,
                template,
                size,
                target,
            } => {
                self.disks
                    .push(disk::attach(image, template, *size, target)?);
                self.targets.push(target.clone());
            }
            Step::BindIdmapped {
                source,
                target,
                base,
                count,
                suid,
            } => {
                let namespace = self.user_namespaces.get(*base, *count)?;
                idmap::bind(source, target, namespace, *suid)?;
                self.targets.push(target.clone());
            }
            Step::Overlay {
                lower,
                upper,
                work,
                target,
            } => {
                overlay::mount(lower, upper, work, target)?;
                self.targets.push(target.clone());
            }
        }
        Ok(())
    }

    /// Detaches everything, the last first. Gives what could not be detached. The loop devices go with
    /// `self`.
    pub fn undo(&mut self) -> Vec<String> {
        self.user_namespaces = idmap::UserNamespaces::default();
        let mut failures = Vec::new();
        while let Some(target) = self.targets.pop() {
            if let Err(error) = sys::detach(&target) {
                failures.push(format!("unmounting {}: {error}", target.display()));
            }
        }
        failures
    }
}

/// An existing directory is taken over; anything else in its place is refused.
fn make_directory(path: &Path, mode: u32, uid: u32, gid: u32) -> io::Result<()> {
    match sys::mkdir(path, 0o700) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let directory = sys::open(path, flags)?;
    sys::change_owner_and_mode(&directory, uid, gid, mode & 0o7777)
}
