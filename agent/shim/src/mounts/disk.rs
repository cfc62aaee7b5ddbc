//! The sandbox's disk: a sparse copy of a formatted template behind a loop device. The image has no
//! name once the device is attached, and the device goes with its last user (autoclear), so that a
//! shim that dies leaves neither.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::sys::{self, Context, Result};

const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
/// Many shims ask for a free device at once and all but one lose the race for each.
const ATTACH_PATIENCE: Duration = Duration::from_secs(10);

/// Gives the loop device, for the caller to hold: letting go of it is what takes time, so that is left
/// to the very end.
pub fn attach(image: &Path, template: &Path, size: u64, target: &Path) -> Result<OwnedFd> {
    let made = make_image(image, template, size)
        .context(|| format!("disk image {}", image.display()))
        .and_then(|file| attach_loop(&file).context(|| "loop device"));
    // Also after a failure: the image is of no use to anybody else.
    let unlinked = sys::unlink_at(sys::cwd(), image, 0);
    let (device, path) = made?;
    unlinked.context(|| format!("unlinking {}", image.display()))?;
    let flags = libc::MS_NODEV | libc::MS_NOSUID | libc::MS_NOATIME;
    let source = path.to_string_lossy();
    // Zeroing unused inode tables in the background would fill the sparse image for nothing, and
    // barriers would have the host flush its disk for data that is gone after a crash anyway.
    sys::mount(&source, target, "ext4", flags, "noinit_itable,nobarrier")
        .context(|| format!("mounting {source} at {}", target.display()))?;
    Ok(device)
}

fn make_image(image: &Path, template: &Path, size: u64) -> io::Result<OwnedFd> {
    let source = sys::open(template, libc::O_RDONLY | libc::O_NOFOLLOW)?;
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
    let copy = sys::open_at(sys::cwd(), image, flags, 0o600)?;
    let length = libc::off_t::try_from(size).map_err(|_| io::ErrorKind::InvalidInput)?;
    if seek(&source, 0, libc::SEEK_END)? > length {
        return Err(io::Error::other(format!(
            "the template is larger than {size} bytes"
        )));
    }
    // SAFETY: a plain call on a descriptor that is alive.
    sys::check(unsafe { libc::ftruncate(copy.as_raw_fd(), length) }.into())?;
    copy_data(&source, &copy)?;
    Ok(copy)
}

fn seek(file: &OwnedFd, offset: libc::off_t, whence: libc::c_int) -> io::Result<libc::off_t> {
    // SAFETY: a plain call on a descriptor that is alive.
    sys::check(unsafe { libc::lseek(file.as_raw_fd(), offset, whence) })
}

/// Copies the extents that hold data; the rest stays a hole.
fn copy_data(source: &OwnedFd, copy: &OwnedFd) -> io::Result<()> {
    let mut position = 0;
    loop {
        let start = match seek(source, position, libc::SEEK_DATA) {
            Ok(start) => start,
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return Ok(()),
            Err(error) => return Err(error),
        };
        let end = seek(source, start, libc::SEEK_HOLE)?;
        copy_range(source, copy, start, end)?;
        position = end;
    }
}

fn copy_range(
    source: &OwnedFd,
    copy: &OwnedFd,
    mut start: libc::off_t,
    end: libc::off_t,
) -> io::Result<()> {
    let mut chunk = vec![0u8; 128 << 10];
    while start < end {
        let wanted = usize::try_from(end - start)
            .unwrap_or(usize::MAX)
            .min(chunk.len());
        // SAFETY: the chunk is writable for `wanted` bytes.
        let size = sys::check(unsafe {
            libc::pread(source.as_raw_fd(), chunk.as_mut_ptr().cast(), wanted, start) as i64
        })? as usize;
        if size == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut written = 0;
        while written < size {
            let rest = &chunk[written..size];
            let offset = start + written as libc::off_t;
            // SAFETY: the rest of the chunk is readable for its whole length.
            written += sys::check(unsafe {
                libc::pwrite(copy.as_raw_fd(), rest.as_ptr().cast(), rest.len(), offset) as i64
            })? as usize;
        }
        start += size as libc::off_t;
    }
    Ok(())
}

/// struct loop_info64 of the kernel.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// struct loop_config of the kernel.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

fn attach_loop(file: &OwnedFd) -> io::Result<(OwnedFd, PathBuf)> {
    let control = sys::open(Path::new("/dev/loop-control"), libc::O_RDWR)?;
    let deadline = Instant::now() + ATTACH_PATIENCE;
    loop {
        // SAFETY: the request takes no argument.
        let result = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
        let number = sys::check(result.into())?;
        let path = PathBuf::from(format!("/dev/loop{number}"));
        match configure(&path, file) {
            Ok(device) => return Ok((device, path)),
            // Another shim was faster, or the node of a new device is not there yet.
            Err(error)
                if Instant::now() < deadline
                    && matches!(
                        error.raw_os_error(),
                        Some(libc::EBUSY | libc::ENXIO | libc::ENOENT | libc::ENODEV)
                    ) =>
            {
                // Different pauses in different shims keep them from racing in step.
                let spread = u64::from(std::process::id() % 8) * 50;
                std::thread::sleep(Duration::from_micros(100 + spread));
            }
            Err(error) => return Err(error),
        }
    }
}

fn configure(path: &Path, file: &OwnedFd) -> io::Result<OwnedFd> {
    let device = sys::open(path, libc::O_RDWR)?;
    // SAFETY: the structure is plain data for which all zeroes are valid.
    let mut config: LoopConfig = unsafe { std::mem::zeroed() };
    config.fd = file.as_fd().as_raw_fd() as RawFd as u32;
    config.info.flags = LO_FLAGS_AUTOCLEAR;
    // SAFETY: the configuration has the kernel's layout and outlives the call.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) };
    sys::check(result.into())?;
    Ok(device)
}
