//! The device list of a cgroup 2 group: a program of the kernel's virtual machine that allows the
//! standard character devices and nothing else.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use crate::sys;

const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_PROG_ATTACH: libc::c_int = 8;
const BPF_PROG_TYPE_CGROUP_DEVICE: u32 = 15;
const BPF_CGROUP_DEVICE: u32 = 6;
const BPF_F_ALLOW_MULTI: u32 = 2;
const CHARACTER_DEVICE: i32 = 2;

/// Character devices allowed besides the pseudo-terminals: null, zero, full, random, urandom, tty,
/// ptmx.
const ALLOWED: [(i32, i32); 7] = [(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 2)];
const PSEUDO_TERMINAL_MAJOR: i32 = 136;

/// One instruction, in the kernel's layout.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Instruction {
    code: u8,
    /// Destination in the low half, source in the high half.
    registers: u8,
    offset: i16,
    immediate: i32,
}

const fn load_word(destination: u8, offset: i16) -> Instruction {
    // r1 points to struct bpf_cgroup_dev_ctx { access_type, major, minor }.
    Instruction {
        code: 0x61,
        registers: destination | (1 << 4),
        offset,
        immediate: 0,
    }
}

const fn and(register: u8, immediate: i32) -> Instruction {
    Instruction {
        code: 0x57,
        registers: register,
        offset: 0,
        immediate,
    }
}

const fn jump_if_not_equal(register: u8, immediate: i32, skip: i16) -> Instruction {
    Instruction {
        code: 0x55,
        registers: register,
        offset: skip,
        immediate,
    }
}

const fn set(register: u8, immediate: i32) -> Instruction {
    Instruction {
        code: 0xb7,
        registers: register,
        offset: 0,
        immediate,
    }
}

const fn leave() -> Instruction {
    Instruction {
        code: 0x95,
        registers: 0,
        offset: 0,
        immediate: 0,
    }
}

/// r2 = type, r4 = major, r5 = minor; each rule is a test that falls through to "return 1".
fn program() -> Vec<Instruction> {
    let mut code = vec![
        load_word(2, 0),
        and(2, 0xFFFF),
        load_word(4, 4),
        load_word(5, 8),
        jump_if_not_equal(2, CHARACTER_DEVICE, 2 + 4 * ALLOWED.len() as i16 + 1),
    ];
    for (major, minor) in ALLOWED {
        code.push(jump_if_not_equal(4, major, 3));
        code.push(jump_if_not_equal(5, minor, 2));
        code.push(set(0, 1));
        code.push(leave());
    }
    code.push(jump_if_not_equal(4, PSEUDO_TERMINAL_MAJOR, 2));
    code.push(set(0, 1));
    code.push(leave());
    code.push(set(0, 0));
    code.push(leave());
    code
}

/// The part of union bpf_attr that BPF_PROG_LOAD needs.
#[repr(C)]
#[derive(Default)]
struct LoadAttributes {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buffer: u64,
    kernel_version: u32,
    program_flags: u32,
}

/// The part of union bpf_attr that BPF_PROG_ATTACH needs.
#[repr(C)]
struct AttachAttributes {
    target: u32,
    program: u32,
    attach_type: u32,
    flags: u32,
}

fn bpf<T>(command: libc::c_int, attributes: &T) -> io::Result<libc::c_long> {
    let size = std::mem::size_of::<T>();
    // SAFETY: the attributes have the kernel's layout for this command and outlive the call; a
    // shorter structure than the kernel's own is taken as zero in the rest.
    sys::check(unsafe { libc::syscall(libc::SYS_bpf, command, &raw const *attributes, size) })
}

/// Attaches the filter to a group. The program lives as long as the group.
pub fn restrict(group: BorrowedFd<'_>) -> io::Result<()> {
    let code = program();
    let load = LoadAttributes {
        program_type: BPF_PROG_TYPE_CGROUP_DEVICE,
        instruction_count: code.len() as u32,
        instructions: code.as_ptr() as u64,
        license: c"Apache-2.0".as_ptr() as u64,
        ..LoadAttributes::default()
    };
    let loaded = sys::own(bpf(BPF_PROG_LOAD, &load)? as RawFd);
    let attach = AttachAttributes {
        target: group.as_raw_fd() as u32,
        program: loaded.as_raw_fd() as u32,
        attach_type: BPF_CGROUP_DEVICE,
        flags: BPF_F_ALLOW_MULTI,
    };
    bpf(BPF_PROG_ATTACH, &attach).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_jump_lands_inside_the_program() {
        let code = program();
        for (index, instruction) in code.iter().enumerate() {
            if instruction.code == 0x55 {
                let target = index + 1 + usize::try_from(instruction.offset).unwrap();
                assert!(target < code.len());
            }
        }
        // A device that is no character device goes straight to the refusal.
        let refusal = 5 + usize::try_from(code[4].offset).unwrap();
        assert_eq!(code[refusal], set(0, 0));
    }
}
