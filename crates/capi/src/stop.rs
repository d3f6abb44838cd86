//! What ends launches that run, from any thread.

pub use crate::handle::StopHandle;
use crate::handle::Table;
use crate::pointer::put;
use crate::status::{Failure, Status, call};

pub(crate) static STOPS: Table<handloom_runtime::StopHandle> = Table::new();

/// Makes a stop handle. Launches get it by the field `stop` of their configuration, any number of them.
///
/// # Safety
/// `stop` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_stop_create(stop: *mut StopHandle) -> Status {
    call(|| {
        if stop.is_null() {
            return Err(Failure::null("stop"));
        }
        // SAFETY: by the caller's promise.
        unsafe { put(stop, "stop", STOPS.add(handloom_runtime::StopHandle::new())) }
    })
}

/// Ends all launches with this handle, those that run and those that come: they return `HANDLOOM_STATUS_STOPPED`. It does not wait for them. Memory keeps what a kernel
/// has written until then. Any thread may call it. A signal handler may not, since it takes a lock: set a flag there, or give the launch a `timeout_seconds`.
#[unsafe(no_mangle)]
pub extern "C" fn handloom_stop_raise(stop: StopHandle) -> Status {
    call(|| {
        STOPS.get(stop)?.stop();
        Ok(())
    })
}

/// Takes a stop back, so that the handle serves launches again.
#[unsafe(no_mangle)]
pub extern "C" fn handloom_stop_clear(stop: StopHandle) -> Status {
    call(|| {
        STOPS.get(stop)?.renew();
        Ok(())
    })
}

/// Frees a stop handle. Launches that have it go on, and nothing stops them any more.
#[unsafe(no_mangle)]
pub extern "C" fn handloom_stop_release(stop: StopHandle) -> Status {
    call(|| STOPS.remove(stop).map(drop))
}
