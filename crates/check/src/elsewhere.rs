//! What runs on GPUs and not here, and the way around it: functions of the CUDA device runtime.

use handloom_diag::{Code, Diagnostic, Span};

/// Functions of the device runtime that are not provided, by the beginnings of their names: what a program wants with them, and what to do.
const FUNCTIONS: &[(&[&str], &str, &str)] = &[
    (
        &["DeviceSynchronize"],
        "a kernel that waits for those that it started",
        "launch what needs their results into `cudaStreamTailLaunch`: it runs after all that the kernel started",
    ),
    (
        &["GraphLaunch", "GraphKernelNode", "GetCurrentGraphExec"],
        "a kernel that works on graphs",
        "launch the kernels of the graph one by one",
    ),
    (
        &[
            "LaunchDevice",
            "GetParameterBuffer",
            "DeviceGet",
            "Event",
            "FuncGetAttributes",
            "Memcpy",
            "Memset",
            "Occupancy",
            "RuntimeGetVersion",
            "SetDevice",
            "Stream",
        ],
        "this function of the CUDA runtime in device code",
        "device code can launch kernels, use streams and events, copy and fill rows of memory: do the rest on the host",
    ),
];

/// What its names begin with: the second is that of CUDA 12 and newer.
const PREFIXES: &[&str] = &["cuda", "__cudaCDP2", "__cuda"];

/// An error if a function that no module defines, and that is not provided, is of the device runtime.
pub(crate) fn device_runtime(name: &str, span: Span) -> Option<Diagnostic> {
    let rests = || PREFIXES.iter().filter_map(|p| name.strip_prefix(p));
    let is_of = |table: &[&str]| rests().any(|rest| table.iter().any(|begin| rest.starts_with(begin)));
    let (_, what, help) = FUNCTIONS.iter().find(|(begins, ..)| is_of(begins))?;
    let message = format!("{what} is not supported yet: `{name}`");
    Some(Diagnostic::unsupported(Code::Unsupported, span, "call", message).help(*help))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_device_runtime() {
        let told = |name| device_runtime(name, Span::NONE).unwrap_or_else(|| panic!("{name}")).message;
        assert!(told("__cudaDeviceSynchronizeDeprecationAvoidance").contains("waits for"));
        assert!(told("cudaGraphLaunch").contains("graphs"));
        for name in
            ["cudaMemcpy3DAsync_ptsz", "__cudaCDP2Memcpy3DAsync", "cudaOccupancyMaxActiveBlocksPerMultiprocessor"]
        {
            told(name);
        }
        for name in [
            "cudaCGSynchronize",
            "cudaCGGetIntrinsicHandle",
            "cudaGraphSetConditional",
            "cudaMine",
            "cuda",
            "vprintf",
            "Stream",
        ] {
            assert!(device_runtime(name, Span::NONE).is_none(), "{name}");
        }
    }
}
