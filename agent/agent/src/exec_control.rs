//! The short requests about processes: input, size, signals, the list.

use fourwalls_protocol::frame::DATA_PAYLOAD_LIMIT;
use fourwalls_protocol::request::{
    ExecCloseStdin, ExecInput, ExecResize, ExecSignal, Nothing, PtySize,
};
use fourwalls_protocol::{kind, reply, wire};

use crate::agent::Agent;
use crate::failure::{Failure, Fatal};
use crate::input::Origin;
use crate::process::Process;
use crate::streams::Stream;
use crate::sys;
use crate::tree::{self, Tree};

/// Bytes that may wait for one process's input by request.
const WAITING_LIMIT: usize = 1024 * 1024;

/// Bytes of descriptions that fit a `RESULT` for sure.
const LIST_LIMIT: usize = 768 * 1024;

impl Agent {
    /// `EXEC_INPUT`: answered when the bytes are written.
    pub fn exec_input(&mut self, stream: u32, body: &[u8]) -> Result<(), Failure> {
        let request: ExecInput = wire::decode(body)?;
        if request.data.len() > DATA_PAYLOAD_LIMIT {
            return Err(Failure::new(
                "too_large",
                "more than 256 KiB of input at once",
            ));
        }
        let id = self.find_process(request.pid, request.tag.as_deref())?;
        let process = self.process(id)?;
        if !process.input.is_open() {
            return Err(Failure::invalid("the input of the process is closed"));
        }
        if process.input.waiting() > WAITING_LIMIT {
            return Err(Failure::new("busy", "the process does not read its input"));
        }
        process
            .input
            .push(request.data.into_vec(), 0, Origin::Request(stream));
        self.streams.open(stream, Stream::Waiting);
        self.write_input(id).map_err(internal)
    }

    /// `EXEC_CLOSE_STDIN`: what waits is still written.
    pub fn exec_close_stdin(&mut self, stream: u32, body: &[u8]) -> Result<(), Failure> {
        let request: ExecCloseStdin = wire::decode(body)?;
        let id = self.find_process(request.pid, request.tag.as_deref())?;
        self.finish_input(id).map_err(internal)?;
        self.link.signal(kind::OK, 0, stream);
        Ok(())
    }

    /// No more input for a process.
    pub fn finish_input(&mut self, id: u32) -> Result<(), Fatal> {
        if let Some(process) = self.books.get(id) {
            process.input.finish();
        }
        self.write_input(id)
    }

    /// `EXEC_RESIZE`.
    pub fn exec_resize(&mut self, stream: u32, body: &[u8]) -> Result<(), Failure> {
        let request: ExecResize = wire::decode(body)?;
        let id = self.find_process(request.pid, request.tag.as_deref())?;
        let size = PtySize {
            cols: request.cols,
            rows: request.rows,
        };
        self.process(id)?
            .resize(size)
            .ok_or_else(|| Failure::invalid("the process has no terminal"))?
            .map_err(|error| Failure::from_io("the terminal", &error))?;
        self.link.signal(kind::OK, 0, stream);
        Ok(())
    }

    /// `EXEC_SIGNAL`: to the process, or to all of its tree.
    pub fn exec_signal(&mut self, stream: u32, body: &[u8]) -> Result<(), Failure> {
        let request: ExecSignal = wire::decode(body)?;
        let id = self.find_process(request.pid, request.tag.as_deref())?;
        let signal = i32::from(request.signal);
        if signal > 64 {
            return Err(Failure::invalid(format!(
                "no signal has the number {signal}"
            )));
        }
        let process = self.process(id)?;
        if request.tree {
            let tree = Tree::of(process);
            self.streams.open(stream, Stream::Waiting);
            self.signal_tree(tree, signal, Some(stream));
            return Ok(());
        }
        if process.ended.is_some() {
            return Err(Failure::new(
                "not_found",
                format!("process {} has ended", process.pid),
            ));
        }
        // It has not been reaped, so the number is still its own.
        sys::kill(process.pid, signal)
            .map_err(|error| Failure::from_io(format!("process {}", process.pid), &error))?;
        self.link.signal(kind::OK, 0, stream);
        Ok(())
    }

    /// Signal a tree from a thread: the hunt takes as many rounds as it takes.
    pub fn signal_tree(&mut self, tree: Tree, signal: i32, stream: Option<u32>) {
        let serial = stream.map_or(0, |stream| self.streams.serial(stream));
        self.workers.submit_urgent(Box::new(move || {
            let done = if signal == libc::SIGKILL {
                tree::kill(&tree)
            } else {
                tree::signal(&tree, signal)
            };
            Box::new(move |agent: &mut Agent| {
                let Some(stream) = stream.filter(|id| agent.streams.same(*id, serial).is_some())
                else {
                    return Ok(());
                };
                agent.streams.close(stream);
                match done {
                    Ok(()) => agent.link.signal(kind::OK, 0, stream),
                    Err(failure) => agent.link.fail(stream, failure),
                }
                Ok(())
            })
        }));
    }

    /// `EXEC_LIST`.
    pub fn exec_list(&mut self, stream: u32, body: &[u8]) -> Result<(), Failure> {
        let _: Nothing = wire::decode(body)?;
        let mut processes: Vec<reply::Process> = self.books.iter().map(describe).collect();
        if size(&processes) > LIST_LIMIT {
            processes.iter_mut().for_each(|process| process.env.clear());
        }
        if size(&processes) > LIST_LIMIT {
            for process in &mut processes {
                process.argv.truncate(1);
                process
                    .argv
                    .iter_mut()
                    .for_each(|argument| argument.truncate(256));
            }
        }
        self.link
            .send(kind::RESULT, stream, &reply::ProcessList { processes });
        Ok(())
    }

    fn process(&mut self, id: u32) -> Result<&mut Process, Failure> {
        self.books
            .get(id)
            .ok_or_else(|| Failure::new("not_found", "no such process"))
    }
}

fn internal(fatal: Fatal) -> Failure {
    Failure::new("internal", format!("{fatal:?}"))
}

fn describe(process: &Process) -> reply::Process {
    let about = &process.about;
    reply::Process {
        pid: process.pid,
        tag: about.tag.clone(),
        argv: about.argv.clone(),
        env: about.env.clone(),
        cwd: about.cwd.clone(),
        user: about.user.clone(),
        pty: about.pty,
        running: process.ended.is_none(),
        code: process.ended.map_or(0, |ended| ended.code),
        signal: process.ended.map_or(0, |ended| ended.signal),
    }
}

fn size(processes: &[reply::Process]) -> usize {
    let bytes = |process: &reply::Process| {
        let argv: usize = process.argv.iter().map(|argument| argument.len() + 5).sum();
        let env: usize = process
            .env
            .iter()
            .map(|(k, v)| k.len() + v.len() + 10)
            .sum();
        argv + env + process.cwd.len() + process.user.len() + 128
    };
    processes.iter().map(bytes).sum()
}
