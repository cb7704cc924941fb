//! The capacity of a pipe: how much it holds before its writer waits.

use std::os::fd::AsFd;

/// Four times what pipes hold by default: a large result crosses with a quarter of the wake-ups. Not more, because a
/// user has 64 MiB for all pipes, and beyond that new ones become tiny.
#[cfg(target_os = "linux")]
const WIDTH: usize = 256 * 1024;

/// Lets a pipe hold more, where it is a pipe and the system lets us.
#[cfg(target_os = "linux")]
pub fn widen(pipe: impl AsFd) {
    // What is no pipe, or is wide enough, stays as it is.
    if rustix::pipe::fcntl_getpipe_size(&pipe).is_ok_and(|width| width < WIDTH) {
        let _ = rustix::pipe::fcntl_setpipe_size(&pipe, WIDTH);
    }
}

/// Elsewhere pipes are as wide as they are.
#[cfg(not(target_os = "linux"))]
pub fn widen(_pipe: impl AsFd) {}
