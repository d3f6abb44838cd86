//! Events. See "Event Management".

use crate::cu;
use crate::device::ready;
use crate::error::{Answer, driver};
use crate::stream::per_thread;
use crate::types::{IpcHandle, Out, put};

fn create(event: Out<'_, u64>, flags: u32) -> Answer {
    ready()?;
    let mut made = 0;
    driver(cu::cuEventCreate(&mut made, flags))?;
    put(event, made)
}

fn record(event: u64, stream: u64, flags: u32) -> Answer {
    ready()?;
    driver(cu::cuEventRecordWithFlags(event, stream, flags))
}

fn elapsed(milliseconds: Out<'_, f32>, start: u64, end: u64) -> Answer {
    ready()?;
    let mut time = 0.0;
    driver(cu::cuEventElapsedTime_v2(&mut time, start, end))?;
    put(milliseconds, time)
}

calls! {
    fn cudaEventCreate(event: Out<'_, u64>) {
        create(event, 0)
    }

    fn cudaEventCreateWithFlags(event: Out<'_, u64>, flags: u32) {
        create(event, flags)
    }

    fn cudaEventDestroy(event: u64) {
        ready()?;
        driver(cu::cuEventDestroy_v2(event))
    }

    fn cudaEventRecord / cudaEventRecord_ptsz(event: u64; stream: u64) {
        record(event, stream, 0)
    }

    fn cudaEventRecordWithFlags(event: u64, stream: u64, flags: u32) {
        record(event, stream, flags)
    }

    fn cudaEventRecordWithFlags_ptsz(event: u64, stream: u64, flags: u32) {
        record(event, per_thread(stream), flags)
    }

    fn cudaEventQuery(event: u64) {
        ready()?;
        driver(cu::cuEventQuery(event))
    }

    fn cudaEventSynchronize(event: u64) {
        ready()?;
        driver(cu::cuEventSynchronize(event))
    }

    fn cudaEventElapsedTime(milliseconds: Out<'_, f32>, start: u64, end: u64) {
        elapsed(milliseconds, start, end)
    }

    fn cudaEventElapsedTime_v2(milliseconds: Out<'_, f32>, start: u64, end: u64) {
        elapsed(milliseconds, start, end)
    }

    fn cudaIpcGetEventHandle(handle: Out<'_, IpcHandle>, event: u64) {
        ready()?;
        let mut made = IpcHandle { bytes: [0; 64] };
        driver(cu::cuIpcGetEventHandle(&mut made, event))?;
        put(handle, made)
    }

    fn cudaIpcOpenEventHandle(event: Out<'_, u64>, handle: IpcHandle) {
        ready()?;
        let mut made = 0;
        driver(cu::cuIpcOpenEventHandle(&mut made, handle))?;
        put(event, made)
    }
}
