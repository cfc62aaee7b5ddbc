//! The shim from the outside: what a host sees of it, and what it leaves behind.

// Outside of test functions too, a failure here is a failed test.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use common::{
    boot_time_ns, control, eventually, fake_runtime, frame, receive, template, Plan, STATE,
};
use serde_json::{json, Value};

fn text<'a>(record: &'a Value, key: &str) -> &'a str {
    record[key].as_str().unwrap()
}

#[test]
fn frames_pass_and_an_orderly_end_is_exited() {
    let mut shim = Plan::new("serve").start().running();
    shim.echo(b"hello");
    shim.echo(&vec![3; 300_000]);
    shim.send(&frame(0x42, 9, b""));
    assert_eq!(shim.wait_for(0x81).stream, 9);
    let record = shim.gone();
    assert_eq!(text(&record, "cause"), "exited");
    assert_eq!(record["exit_code"], 0);
    assert_eq!(record["signal"], 0);
    assert_eq!(text(&record, "stage"), "");
    assert!(record["ended_at"].as_f64().unwrap() >= record["started_at"].as_f64().unwrap());
    assert!(
        !shim.dir.exists(),
        "an embedded sandbox takes its directory along"
    );
}

#[test]
fn frames_sent_before_the_runtime_returned_are_kept() {
    let mut shim = Plan::new("slow").start();
    shim.send(&[control(0xF2, json!({})), frame(0x05, 5, b"early")].concat());
    let state = shim.wait_for(STATE).value();
    assert_eq!(state["phase"], "starting");
    assert_eq!(shim.wait_for(0x05).body, b"early");
    shim.kill();
}

#[test]
fn a_bad_specification_is_answered_with_gone() {
    for bad in [
        b"\xc1".to_vec(),
        b"".to_vec(),
        rmp_serde::to_vec_named(&json!({})).unwrap(),
    ] {
        let record = Plan::new("serve").start_with(&bad).gone();
        assert_eq!(
            (text(&record, "cause"), text(&record, "stage")),
            ("boundary_died", "spec")
        );
        assert!(!text(&record, "message").is_empty());
    }
    for (key, value) in [
        ("version", json!(2)),
        ("dir", json!("relative")),
        ("argv", json!([])),
        ("mounts", json!([{"op": "format_everything"}])),
        (
            "mounts",
            json!([{"op": "tmpfs_over", "target": "/var/tmp/../etc"}]),
        ),
        ("dir", json!("/nowhere/at/all")),
    ] {
        let record = Plan::new("serve").with(key, value).start().gone();
        assert_eq!(text(&record, "stage"), "spec", "{key}: {record}");
    }
}

#[test]
fn a_failing_runtime_is_reported_with_its_words() {
    let mut shim = Plan::new("fail").server().start();
    let record = shim.gone();
    assert_eq!(
        (text(&record, "cause"), text(&record, "stage")),
        ("boundary_died", "runtime")
    );
    assert!(text(&record, "message").contains("exit status 3"));
    assert!(text(&record, "stderr").contains("the bundle is no good"));
    assert_eq!(shim.exit_record(), record);

    let record = Plan::new("no_pid").start().gone();
    assert!(text(&record, "message").contains("pid file"), "{record}");

    let argv = json!(["/nowhere/runtime"]);
    let record = Plan::new("serve").with("argv", argv).start().gone();
    assert!(
        text(&record, "stderr").contains("exec for /nowhere/runtime"),
        "{record}"
    );
}

#[test]
fn a_hanging_runtime_is_given_up_and_killed() {
    let plan = Plan::new("hang")
        .with_groups(100)
        .with("start_timeout_ms", json!(300));
    let start = Instant::now();
    let record = plan.start().gone();
    assert!(start.elapsed() < Duration::from_secs(4));
    assert_eq!(text(&record, "stage"), "runtime");
    assert!(text(&record, "message").contains("did not return within 300 ms"));
    // Without groups too: then by descent.
    let record = Plan::new("hang")
        .with("start_timeout_ms", json!(300))
        .start()
        .gone();
    assert_eq!(text(&record, "stage"), "runtime");
}

#[test]
fn failed_steps_undo_the_ones_before() {
    let plan = Plan::new("serve").server().with_groups(100);
    let (upper, missing) = (plan.dir.join("made"), plan.dir.join("missing/x"));
    let mounts = json!([
        {"op": "mkdir", "path": upper, "mode": 0o755, "uid": 0, "gid": 0},
        {"op": "tmpfs_over", "target": upper},
        {"op": "tmpfs_over", "target": missing},
    ]);
    let mut shim = plan.with("mounts", mounts).start();
    let record = shim.gone();
    assert_eq!(text(&record, "stage"), "mounts");
    assert!(text(&record, "message").contains("missing/x"), "{record}");

    let groups = json!([{"path": "/proc/nowhere/a/b", "files": []}]);
    let mut plan = Plan::new("serve");
    plan.spec["cgroup"]["groups"] = groups;
    let record = plan.start().gone();
    assert_eq!(text(&record, "stage"), "cgroup", "{record}");
}

/// The whole root file system as the container boundary has it.
fn root_steps(stage: &Path, dir: &Path, image: &Path) -> Value {
    let at = |name: &str| stage.join(name);
    let mkdir = |name: &str, uid: u32| json!({"op": "mkdir", "path": at(name), "mode": 0o755, "uid": uid, "gid": uid});
    json!([
        {"op": "tmpfs_over", "target": stage},
        mkdir("disk", 0),
        mkdir("low", 0),
        mkdir("root", 0),
        {"op": "disk", "image": dir.join("disk.img"), "template": template(), "size": 64 << 20,
         "target": at("disk")},
        {"op": "bind_idmapped", "source": image, "target": at("low"), "base": 300_000, "count": 65_536},
        mkdir("disk/up", 300_000),
        mkdir("disk/work", 0),
        {"op": "overlay", "lower": at("low"), "upper": at("disk/up"), "work": at("disk/work"),
         "target": at("root")},
    ])
}

fn root_plan(behaviour: &str) -> (Plan, PathBuf) {
    let plan = Plan::new(behaviour).server();
    let base = plan.dir.parent().unwrap();
    let (stage, image) = (base.join("stage"), base.join("image"));
    std::fs::create_dir(&stage).unwrap();
    std::fs::create_dir(&image).unwrap();
    std::fs::write(image.join("file"), b"of the image").unwrap();
    let steps = root_steps(&stage, &plan.dir, &image);
    (plan.with("mounts", steps), stage)
}

#[test]
fn the_root_is_built_in_a_namespace_of_its_own_and_gone_at_the_end() {
    let (plan, stage) = root_plan("serve");
    let plan = plan.with_groups(100);
    let mut shim = plan.start().running();
    let root = stage.join("root");
    let root = root.display();
    // The owner is shifted, the image is not writable, the root is.
    assert_eq!(
        shim.shell(&format!("stat -c %u:%g {root}/file")),
        "300000:300000"
    );
    assert_eq!(shim.shell(&format!("cat {root}/file")), "of the image");
    let low = stage.join("low");
    let refused = shim.shell(&format!("touch {}/x 2>&1 || true", low.display()));
    assert!(refused.contains("Read-only"), "{refused}");
    assert_eq!(
        shim.shell(&format!("echo more >> {root}/file; wc -l < {root}/file")),
        "1"
    );
    let options = shim.shell(&format!(
        "grep ' {} ' /proc/mounts",
        stage.join("disk").display()
    ));
    for option in ["ext4", "nodev", "nosuid", "noatime"] {
        assert!(options.contains(option), "{options}");
    }
    // The disk has its size and not more.
    let full = shim.shell(&format!(
        "dd if=/dev/zero of={root}/big bs=1M count=100 2>&1 || true"
    ));
    assert!(full.contains("No space left"), "{full}");
    shim.echo(b"still there");
    // Nothing of it is seen outside, and the image has no name.
    assert_eq!(std::fs::read_dir(&stage).unwrap().count(), 0);
    assert!(!shim.dir.join("disk.img").exists());
    assert_eq!(shim.loop_devices().len(), 1);
    let own = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!own.contains(stage.to_str().unwrap()));

    let record = shim.kill();
    assert_eq!(text(&record, "cause"), "killed");
    assert_eq!(text(&record, "message"), "the client ended it");
    assert_eq!(shim.exit_record(), record);
    assert!(!shim.dir.join("agent.sock").exists());
}

#[test]
fn a_killed_shim_leaves_no_mount_and_no_loop_device() {
    let (plan, stage) = root_plan("serve");
    let mut shim = plan.start().running();
    shim.echo(b"there");
    let first = shim.shell("echo $PPID");
    shim.process.kill().unwrap();
    shim.process.wait().unwrap();
    eventually("the agent has left", || {
        !Path::new(&format!("/proc/{first}")).exists()
    });
    eventually("no loop device", || shim.loop_devices().is_empty());
    assert_eq!(std::fs::read_dir(&stage).unwrap().count(), 0);
}

#[test]
fn many_shims_at_once_get_a_loop_device_each() {
    let shims: Vec<_> = (0..12).map(|_| root_plan("serve").0.start()).collect();
    for mut shim in shims.into_iter().map(|shim| shim.running()) {
        shim.echo(b"up");
        assert_eq!(text(&shim.kill(), "message"), "the client ended it");
    }
}

#[test]
fn groups_are_made_limited_and_removed() {
    let mut shim = Plan::new("serve").with_groups(60).start().running();
    let groups = shim.groups.clone();
    assert!(groups.iter().all(|group| group.exists()));
    let limit = groups.last().unwrap().join("pids.max");
    assert_eq!(std::fs::read_to_string(limit).unwrap().trim(), "60");
    let inside = shim.shell("cat /proc/self/cgroup");
    for group in &groups {
        let name = group.file_name().unwrap().to_str().unwrap();
        assert!(inside.matches(name).count() >= groups.len(), "{inside}");
    }
    // The shim itself is outside.
    let own = std::fs::read_to_string(format!("/proc/{}/cgroup", shim.process.id())).unwrap();
    assert!(!own.contains("shimtest"));
    // A fork bomb, frozen from outside, is no obstacle.
    shim.send(&frame(0x12, 1, b""));
    shim.wait_for(0x81);
    let refused = |group: &PathBuf| {
        let events = std::fs::read_to_string(group.join("pids.events")).unwrap_or_default();
        events.starts_with("max ") && events != "max 0\n"
    };
    eventually("a refused fork", || groups.iter().any(refused));
    for (name, value) in [("freezer.state", "FROZEN"), ("cgroup.freeze", "1")] {
        for file in groups.iter().map(|group| group.join(name)) {
            if file.exists() {
                std::fs::write(file, value).unwrap();
            }
        }
    }
    let record = shim.kill();
    assert_eq!(text(&record, "message"), "the client ended it");
    assert!(record["pids_refused"].as_u64().unwrap() > 0);
}

/// A frozen parent keeps its groups' processes from dying: the nearest to one that cannot be killed.
#[test]
fn what_does_not_die_keeps_its_ids() {
    let root = Path::new("/sys/fs/cgroup/freezer");
    if !root.exists() {
        return;
    }
    let mut plan = Plan::new("serve").with_groups(60);
    let base = plan.dir.parent().unwrap().to_path_buf();
    let slot = base.join("slot");
    std::os::unix::fs::symlink(plan.id(), &slot).unwrap();
    // Its own parent: the others' sandboxes are not to be frozen.
    let own = format!("fourwalls-shimtest-{}", plan.id());
    let cgroup = plan.spec["cgroup"].to_string();
    let cgroup = cgroup.replace("fourwalls-shimtest/", &format!("{own}/"));
    plan.spec["cgroup"] = serde_json::from_str(&cgroup).unwrap();
    let dir = plan.dir.clone();
    let mut shim = plan.with("release", json!([slot])).start().running();
    let state = root.join(&own).join("freezer.state");
    std::fs::write(&state, "FROZEN").unwrap();
    shim.send(&control(0xF1, json!({})));
    let gone: Value = rmp_serde::from_slice(&shim.wait_for(0xF9).body).unwrap();
    std::fs::write(&state, "THAWED").unwrap();
    let message = text(&gone, "message");
    assert!(message.contains("processes were left"), "{message}");
    assert!(
        slot.symlink_metadata().is_ok(),
        "another sandbox could get its ids"
    );
    assert!(
        dir.exists(),
        "the reaper finds what is left by its directory"
    );
}

/// Where the unified hierarchy is mounted, if it is.
fn unified() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    let mut fields = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    fields
        .find(|line| line[2] == "cgroup2")
        .map(|line| PathBuf::from(line[1]))
}

#[test]
fn the_device_filter_lets_standard_devices_through_and_no_other() {
    let Some(unified) = unified() else {
        eprintln!("no cgroup 2 here");
        return;
    };
    let mut plan = Plan::new("serve");
    let path = unified.join("fourwalls-shimtest").join(plan.id());
    plan.spec["cgroup"] = json!({
        "version": 2, "groups": [{"path": path, "files": []}], "device_filter": true,
    });
    let mut shim = plan.start().running();
    assert!(shim.shell("cat /proc/self/cgroup").contains("shimtest"));
    for allowed in ["null", "zero", "full", "random", "urandom", "ptmx"] {
        assert_eq!(
            shim.shell(&format!("exec 3< /dev/{allowed} && echo yes")),
            "yes",
            "{allowed}"
        );
    }
    for refused in [
        "/dev/loop-control",
        "/dev/loop0",
        "/dev/kmsg",
        "/dev/vda",
        "/dev/net/tun",
    ] {
        if Path::new(refused).exists() {
            let answer = shim.shell(&format!("(exec 3< {refused}) 2>&1 || true"));
            assert!(
                answer.contains("Operation not permitted"),
                "{refused}: {answer}"
            );
        }
    }
    // Whoever left its session and lost its parent is killed with the group.
    let daemon = "setsid sleep 600 </dev/null >/dev/null 2>&1 & echo $!";
    let daemon = PathBuf::from("/proc").join(shim.shell(daemon));
    assert!(daemon.exists());
    assert_eq!(text(&shim.kill(), "message"), "the client ended it");
    assert!(!daemon.exists());
}

#[test]
fn the_child_gets_nothing_but_what_it_should() {
    let mut shim = Plan::new("serve")
        .with("membarrier_filter", json!(true))
        .start()
        .running();
    // What starts this shell may still hold the /dev/null it has opened for it.
    let foreign = "ls -l /proc/$PPID/fd | grep -v /dev/null | \
                   grep -E 'socket|lock|cgroup|anon_inode|/dev/' || true";
    assert_eq!(shim.shell(foreign), "");
    assert_eq!(
        shim.shell("grep -c '^SigBlk.*[1-9a-f]' /proc/$PPID/status || true"),
        "0"
    );
    assert_eq!(
        shim.shell("grep ^Seccomp: /proc/$PPID/status | tr -dc 0-9"),
        "2"
    );
    assert_eq!(shim.shell("umask"), "0022");
    assert_eq!(
        shim.shell("env | grep -vE '^(PWD|OLDPWD|SHLVL|_)=' | cut -d= -f1"),
        "PATH"
    );
    shim.kill();
    let mut shim = Plan::new("serve").start().running();
    assert_eq!(
        shim.shell("grep ^Seccomp: /proc/$PPID/status | tr -dc 0-9"),
        "0"
    );
    shim.kill();
}

#[test]
fn an_embedded_sandbox_ends_with_its_client() {
    let mut shim = Plan::new("serve").with_groups(100).start().running();
    let first = shim.shell("echo $PPID");
    shim.client.shutdown(std::net::Shutdown::Both).unwrap();
    assert!(shim.process.wait().unwrap().success());
    assert!(!shim.dir.exists());
    assert!(!Path::new(&format!("/proc/{first}")).exists());
    shim.assert_nothing_left();
}

#[test]
fn a_server_sandbox_survives_clients_that_leave_in_the_middle_of_a_frame() {
    let mut shim = Plan::new("serve").server().start().running();
    // In the middle of what the agent sends: the rest comes in whole frames, in order.
    shim.send(&frame(0x11, 3, &[16]));
    let mut piece = vec![0; 300_000];
    shim.client.read_exact(&mut piece).unwrap();
    shim.reconnect();
    let mut last = None;
    loop {
        let next = receive(&mut shim.client).unwrap();
        if next.kind == 0x81 {
            break;
        }
        assert_eq!(
            (next.kind, next.stream, next.body.len()),
            (0x05, 3, 8 + (256 << 10))
        );
        let number = u64::from_le_bytes(next.body[..8].try_into().unwrap());
        assert!(
            last.is_none_or(|last| number == last + 1),
            "{number} after {last:?}"
        );
        assert!(next.body[8..].iter().all(|byte| *byte == 7));
        last = Some(number);
    }
    assert_eq!(last, Some(63));
    // In the middle of what the client sends: the agent never hears of it.
    for cut in [3, 12, 5000] {
        shim.send(&frame(0x05, 8, &[1; 9000])[..cut]);
        std::thread::sleep(Duration::from_millis(20));
        shim.reconnect();
        shim.echo(b"after the cut");
    }
    // Nobody connected for a while: nothing is lost.
    shim.send(&frame(0x10, 4, b"sleep 0.3; echo kept"));
    std::thread::sleep(Duration::from_millis(50));
    shim.client.shutdown(std::net::Shutdown::Both).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    shim.reconnect();
    assert_eq!(shim.wait_for(0x84).body, b"kept\n");
    assert_eq!(text(&shim.kill(), "cause"), "killed");
}

#[test]
fn a_new_client_replaces_the_one_before_and_strangers_are_refused() {
    let mut shim = Plan::new("serve").server().start().running();
    let mut before = shim.client.try_clone().unwrap();
    shim.reconnect();
    shim.echo(b"second");
    assert_eq!(
        before.read(&mut [0; 1]).unwrap(),
        0,
        "the first client is let go"
    );

    let socket = shim.dir.join("agent.sock");
    assert_eq!(
        std::fs::metadata(&socket).unwrap().permissions().mode() & 0o077,
        0
    );
    std::fs::set_permissions(&shim.dir, PermissionsExt::from_mode(0o711)).unwrap();
    std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o777)).unwrap();
    let tool = shim.dir.parent().unwrap().join("tool");
    std::fs::copy(fake_runtime(), &tool).unwrap();
    let stranger = Command::new(&tool)
        .arg("connect")
        .arg(&socket)
        .uid(12_345)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&stranger.stdout), "refused\n");
    shim.echo(b"still the second");
    shim.kill();
}

#[test]
fn a_malformed_client_is_dropped_alone() {
    let mut shim = Plan::new("serve").server().start().running();
    let oversized = [&(5u32 << 20).to_le_bytes()[..], &[5, 0, 0, 0, 1, 0, 0, 0]].concat();
    let reserved = [&[0u8; 4][..], &[5, 0, 1, 0, 1, 0, 0, 0]].concat();
    for bad in [
        oversized,
        reserved,
        frame(0xF7, 0, b""),
        frame(0xF1, 0, &[0; 5000]),
    ] {
        shim.send(&bad);
        assert_eq!(shim.client.read(&mut [0; 1]).unwrap(), 0);
        shim.reconnect();
        shim.echo(b"next");
    }
    shim.kill();
}

#[test]
fn the_lease_ends_the_sandbox_unless_renewed() {
    let second = 1_000_000_000;
    let plan = Plan::new("serve").with("lease_deadline_ns", json!(boot_time_ns() + second / 2));
    let start = Instant::now();
    let mut shim = plan.start().running();
    let renewed = boot_time_ns() + second;
    shim.send(&control(0xF0, json!({"deadline_ns": renewed})));
    assert_eq!(shim.wait_for(STATE).value()["lease_deadline_ns"], renewed);
    let record = shim.gone();
    assert_eq!(text(&record, "cause"), "lease_expired");
    assert!(boot_time_ns() >= renewed);
    assert!(start.elapsed() < Duration::from_secs(4));

    // In the past: at once. None: never.
    let mut shim = Plan::new("serve").start().running();
    shim.send(&control(
        0xF0,
        json!({"deadline_ns": boot_time_ns() + 200_000_000}),
    ));
    shim.send(&control(0xF0, json!({"deadline_ns": 0})));
    std::thread::sleep(Duration::from_millis(400));
    shim.echo(b"no lease");
    shim.send(&control(0xF0, json!({"deadline_ns": 1})));
    assert_eq!(text(&shim.gone(), "cause"), "lease_expired");

    // Also with nobody connected.
    let mut shim = Plan::new("serve").server().start().running();
    shim.send(&control(
        0xF0,
        json!({"deadline_ns": boot_time_ns() + 300_000_000}),
    ));
    shim.wait_for(STATE);
    shim.client.shutdown(std::net::Shutdown::Both).unwrap();
    assert!(shim.process.wait().unwrap().success());
    assert_eq!(text(&shim.exit_record(), "cause"), "lease_expired");
}

#[test]
fn requests_to_the_shim() {
    let mut shim = Plan::new("serve").server().start().running();
    shim.send(&control(0xF2, json!({})));
    let state = shim.wait_for(STATE).value();
    assert_eq!(state["phase"], "running");
    let first = shim.shell("echo $PPID");
    assert_eq!(state["init_pid"].to_string(), first);
    shim.send(&control(0xF1, json!({"cause": "timeout"})));
    let record = shim.gone();
    assert_eq!(text(&record, "cause"), "timeout");
    assert_eq!(
        (&record["exit_code"], &record["signal"]),
        (&json!(-1), &json!(9))
    );
}

#[test]
fn signals_end_it_and_a_deaf_agent_does_not_help() {
    // The agent reads nothing: what the client sends piles up to the bound and no further.
    let mut shim = Plan::new("deaf").server().start().running();
    shim.client
        .set_write_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let chunk = frame(0x05, 1, &[0; 1 << 20]);
    let mut sent = 0;
    while sent < 64 && shim.client.write_all(&chunk).is_ok() {
        sent += 1;
    }
    assert!((4..=7).contains(&sent), "{sent} MiB were taken");
    assert!(shim.private_memory() < 6 << 10);
    // SAFETY: the shim is this test's own child.
    unsafe { libc::kill(shim.process.id() as i32, libc::SIGTERM) };
    assert!(shim.process.wait().unwrap().success());
    let record = shim.exit_record();
    assert_eq!(text(&record, "cause"), "killed");
    assert!(text(&record, "message").contains("signal 15"));
}

#[test]
fn hostile_agents() {
    for (behaviour, words) in [
        ("oversized", "claims a body of 2097152 bytes"),
        ("reserved", "reserved field"),
        ("control", "frame of kind 0xf8"),
        ("hostile_after_good", "frame of kind 0xff"),
    ] {
        let mut shim = Plan::new(behaviour).server().start();
        let record = shim.gone();
        assert_eq!(text(&record, "cause"), "boundary_died", "{behaviour}");
        assert!(
            text(&record, "message").contains(words),
            "{behaviour}: {record}"
        );
    }
    let mut shim = Plan::new("hostile_after_good").start();
    assert_eq!(shim.wait_for(0x84).body, b"last words");
    shim.gone();

    // The beginning of a frame that never ends is not passed on.
    let mut shim = Plan::new("truncated").start();
    shim.wait_for(0x82);
    assert_eq!(text(&shim.gone(), "cause"), "boundary_died");
    // Nobody asked it to leave.
    let record = Plan::new("leave").start().gone();
    assert_eq!(text(&record, "cause"), "boundary_died");
    // It lives but does not speak any more.
    let start = Instant::now();
    let record = Plan::new("closed").start().gone();
    assert!(
        text(&record, "message").contains("closed its connection"),
        "{record}"
    );
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn the_death_of_the_first_process_is_noticed_at_once() {
    let mut shim = Plan::new("serve")
        .with_groups(100)
        .server()
        .start()
        .running();
    // A process that keeps the agent's pipes open changes nothing.
    shim.shell("sleep 600 < /proc/$PPID/fd/0 > /proc/$PPID/fd/1 2>/dev/null & echo $!");
    let start = Instant::now();
    shim.send(&frame(0x10, 1, b"kill -ABRT $PPID"));
    let record = shim.gone();
    assert!(start.elapsed() < Duration::from_secs(1));
    assert_eq!(text(&record, "cause"), "boundary_died");
    assert_eq!(
        (&record["exit_code"], &record["signal"]),
        (&json!(-1), &json!(6))
    );
}

#[test]
fn out_of_memory_is_told_from_other_deaths() {
    // A counter as the kernel writes it; the group's own cannot be moved without a real shortage.
    let plan = Plan::new("serve");
    let counter = plan.dir.parent().unwrap().join("memory.events");
    std::fs::write(&counter, "low 0\noom_kill 2\n").unwrap();
    let mut plan = plan;
    plan.spec["cgroup"]["oom"] = json!(counter);
    let mut shim = plan.start().running();
    shim.send(&frame(0x10, 1, b"kill -KILL $PPID"));
    let record = shim.gone();
    assert_eq!(text(&record, "cause"), "oom");
    assert_eq!(record["oom_kills"], 2);
}

#[test]
fn what_goes_to_stderr_is_bounded() {
    let mut shim = Plan::new("stderr_flood").start().running();
    shim.echo(b"through");
    let memory = shim.private_memory();
    assert!(memory < 1 << 10, "{memory} KiB");
    let stderr = text(&shim.kill(), "stderr").to_owned();
    assert!(stderr.starts_with("first line\n"));
    assert!(stderr.ends_with("last line\n"));
    assert!(stderr.contains("bytes left out"));
    assert!(stderr.len() < 70 << 10);
}

#[test]
fn a_stalled_client_costs_bounded_memory_and_an_idle_shim_next_to_none() {
    let mut shim = Plan::new("serve").start().running();
    shim.send(&frame(0x11, 1, &[200]));
    std::thread::sleep(Duration::from_millis(500));
    let stalled = shim.private_memory();
    // The largest frame there is, and what is read in one go.
    assert!(stalled < 6 << 10, "{stalled} KiB while stalled");
    let start = Instant::now();
    let mut count = 0u64;
    loop {
        let next = receive(&mut shim.client).unwrap();
        if next.kind == 0x81 {
            break;
        }
        assert_eq!(
            u64::from_le_bytes(next.body[..8].try_into().unwrap()),
            count
        );
        count += 1;
    }
    assert_eq!(count, 800);
    println!(
        "{:.0} MB/s",
        200.0 * 1.048_576 / start.elapsed().as_secs_f64()
    );
    // The other way round, with the largest frame there is.
    shim.echo(&vec![9; (1 << 20) - 12]);
    eventually("memory is given back", || shim.private_memory() < 512);
    println!("{} KiB idle", shim.private_memory());
    shim.kill();
}

#[test]
fn cleanup_stays_inside_and_slots_are_released() {
    let plan = Plan::new("serve").server();
    let base = plan.dir.parent().unwrap().to_path_buf();
    let (state, outside, slot) = (base.join("state"), base.join("outside"), base.join("slot"));
    std::fs::create_dir_all(state.join("deep/er")).unwrap();
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("kept"), b"").unwrap();
    std::os::unix::fs::symlink(&outside, state.join("deep/link")).unwrap();
    std::os::unix::fs::symlink("anywhere", &slot).unwrap();
    let plan = plan.with("cleanup", json!([state, base.join("missing")]));
    let mut shim = plan.with("release", json!([slot])).start().running();
    assert!(slot.symlink_metadata().is_ok());
    let record = shim.kill();
    assert_eq!(text(&record, "message"), "the client ended it");
    assert!(!state.exists());
    assert!(outside.join("kept").exists());
    assert!(slot.symlink_metadata().is_err());
}

#[test]
fn an_idle_shim_does_not_wake_up() {
    let mut shim = Plan::new("serve").start().running();
    shim.echo(&vec![1; 100_000]);
    std::thread::sleep(Duration::from_secs(1));
    let switches = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("voluntary_ctxt_switches"));
        line.unwrap()
            .split_ascii_whitespace()
            .nth(1)
            .unwrap()
            .to_owned()
    };
    let before = switches(shim.process.id());
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(switches(shim.process.id()), before);
    shim.kill();
}
